package top

import (
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
)

// curveMost is how many readings a curve has.
const curveMost = 60

// curves are the last rates of groups, by their paths.
type curves map[string][]watch.Rates

// add notes the rates of a snapshot, and forgets groups that are gone. A reading that is not known
// counts as none.
func (c curves) add(s *watch.Snapshot) {
	kept := 0
	for _, g := range s.Groups {
		line, is := c[g.Path]
		if sum, known := g.Sum(); known {
			if len(line) == curveMost {
				copy(line, line[1:])
				line[curveMost-1] = sum
			} else {
				line = append(line, sum)
			}
			c[g.Path], is = line, true
		}
		if is {
			kept++
		}
	}
	if kept == len(c) {
		return
	}
	there := map[string]bool{}
	for _, g := range s.Groups {
		there[g.Path] = true
	}
	for path := range c {
		if !there[path] {
			delete(c, path)
		}
	}
}

// lines draws what a group read and wrote, each with its largest rate; none: nothing is known yet.
func (c curves) lines(path string) []string {
	line := c[path]
	if len(line) == 0 {
		return nil
	}
	all := []string{""}
	for _, k := range []limit.Key{limit.RBPS, limit.WBPS} {
		most := 0.0
		for _, r := range line {
			most = max(most, r.Get(k))
		}
		var b strings.Builder
		for _, r := range line {
			b.WriteRune(level(r.Get(k), most))
		}
		all = append(all, left(k.Direction(), len("write"))+" "+left(b.String(), curveMost)+" most "+limit.FormatMeasured(most)+"/s")
	}
	return all
}

// level is a block whose height is a share of the most; what is not 0 can be seen.
func level(v, most float64) rune {
	if v <= 0 || most <= 0 {
		return ' '
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	return blocks[min(int(v/most*float64(len(blocks))), len(blocks)-1)]
}
