package top

import (
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
)

// curveMost is how many readings a curve has.
const curveMost = 60

// curves are the last rates of groups, by their paths.
type curves map[string]*curve

// A curve is what a group did, and for how many readings it has done nothing since. Of thousands of groups
// most do nothing, and cost nothing.
type curve struct {
	line []watch.Rates
	rest int
}

// add adds a reading.
func (c *curve) add(r watch.Rates) {
	if r == (watch.Rates{}) {
		if c.rest++; c.rest >= curveMost {
			*c = curve{rest: curveMost}
		}
		return
	}
	all := append(c.all(), r)
	*c = curve{line: all[max(0, len(all)-curveMost):]}
}

// all are its readings, at most curveMost.
func (c *curve) all() []watch.Rates {
	all := append(slices.Clone(c.line), make([]watch.Rates, c.rest)...)
	return all[max(0, len(all)-curveMost):]
}

// add notes the rates of a snapshot, and forgets groups that are gone. A reading that is not known
// counts as none.
func (c curves) add(facts []fact) {
	kept := 0
	for i := range facts {
		f := &facts[i]
		if f.line == nil {
			f.line = c[f.path]
		}
		if f.line == nil && f.known {
			f.line = &curve{}
			c[f.path] = f.line
		}
		if f.line == nil {
			continue
		}
		if kept++; f.known {
			f.line.add(f.sum)
		}
	}
	if kept == len(c) {
		return
	}
	there := map[string]bool{}
	for i := range facts {
		there[facts[i].path] = true
	}
	for path := range c {
		if !there[path] {
			delete(c, path)
		}
	}
}

// besideCurve is what else is in a curve's line: "write ", and " most 48.1 MB/s".
const besideCurve = 6 + 15

// lines draws what a group read and wrote, each with its largest rate; none: nothing is known yet. width is the
// terminal's, or 0: in a narrow one there are fewer readings.
func (c curves) lines(path string, width int) []string {
	known := c[path]
	if known == nil {
		return nil
	}
	line, room := known.all(), curveMost
	if width > 0 {
		room = min(max(width-besideCurve, 1), curveMost)
	}
	line = line[max(0, len(line)-room):]
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
		all = append(all, left(k.Direction(), len("write"))+" "+left(b.String(), room)+" most "+limit.FormatMeasured(most)+"/s")
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
