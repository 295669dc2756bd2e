package metrics

import (
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/watch"
)

// A collector makes the metrics of one snapshot.
type collector struct {
	snapshot *watch.Snapshot
	all      bool // also of groups without a limit
	version  string
}

// Describe names no metrics, which makes the collector an unchecked one: which of them there are
// depends on the snapshot.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect makes the metrics. A group whose path cannot be told from that of another is left out,
// and counted: one double series would lose the whole scrape.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := sink{out: out, descs: map[string]*prometheus.Desc{}}
	s.add(build, 1, c.version, runtime.Version())
	s.add(watched, float64(c.snapshot.Watched))
	unread := c.snapshot.Unread
	seen := map[string]bool{}
	for _, g := range c.snapshot.Groups {
		if !c.all && !g.Limited() && g.Paced == nil {
			continue
		}
		path := label(g.Path)
		if seen[path] {
			unread++
			continue
		}
		seen[path] = true
		s.group(path, g)
	}
	s.add(unreadable, float64(unread))
}

// A sink takes metrics, and makes each description once.
type sink struct {
	out   chan<- prometheus.Metric
	descs map[string]*prometheus.Desc
}

func (s sink) add(m Metric, value float64, labels ...string) {
	d := s.descs[m.Name]
	if d == nil {
		d = m.desc()
		s.descs[m.Name] = d
	}
	s.out <- prometheus.MustNewConstMetric(d, m.Type, value, labels...)
}

func (s sink) group(path string, g *watch.Group) {
	s.add(info, 1, path, label(g.Target), g.Owner.Kind)
	nodes := map[string]bool{}
	for _, d := range g.Devices {
		node := label(d.Node)
		if nodes[node] { // two devices, one of them gone
			node = d.Number.String()
		}
		nodes[node] = true
		s.device(path, node, d)
	}
	if p := g.Pressure; p != nil {
		s.add(waiting, p.Total.Some.Seconds(), path)
		s.add(stalled, p.Total.Full.Seconds(), path)
	}
	if m := g.Memory; m != nil {
		s.add(dirty, float64(m.Dirty), path)
		s.add(writeback, float64(m.Writeback), path)
	}
	if p := g.Paced; p != nil && p.Lapsed == "" {
		s.add(paced, float64(p.WBPS), path)
	}
}

func (s sink) device(path, node string, d watch.Device) {
	if d.Counted {
		s.add(readBytes, float64(d.Total.ReadBytes), path, node)
		s.add(writtenBytes, float64(d.Total.WrittenBytes), path, node)
		s.add(reads, float64(d.Total.Reads), path, node)
		s.add(writes, float64(d.Total.Writes), path, node)
	}
	expected := map[string]bool{}
	for _, k := range limit.Keys {
		n, bound := d.Limit.Get(k).Number()
		if !bound {
			continue
		}
		s.add(limits()[k], float64(n), path, node)
		if d.Expected != nil {
			_, all := d.Holders(k)
			before, known := expected[k.Direction()]
			expected[k.Direction()] = all && (before || !known)
		}
	}
	for direction, all := range expected {
		value := 0.0
		if all {
			value = 1
		}
		s.add(limitExpected, value, path, node, direction)
	}
}

// limits are the metrics of the four rates.
func limits() [4]Metric {
	return [...]Metric{limit.RBPS: limitReadBytes, limit.WBPS: limitWrittenBytes, limit.RIOPS: limitReads, limit.WIOPS: limitWrites}
}

// label makes the value of a label, which has to be UTF-8. Names of groups come from others and
// need not be.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strings.Trim(strconv.Quote(name), `"`)
}
