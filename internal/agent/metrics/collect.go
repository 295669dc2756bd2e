package metrics

import (
	"cmp"
	"maps"
	pathpkg "path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/targets"
)

// A gathering makes the metrics of one snapshot. It is its own prometheus.Gatherer: a registry would
// make each of thousands of metrics twice, and sort and check what is in order here.
type gathering struct {
	snapshot *watch.Snapshot
	measured map[limitOf]bool
	all      bool             // also of groups without a limit
	agent    *api.AgentCounts // nil: weird run does not answer
	quotas   []quota.Status
	sums     map[string]pacer.Sum // by the group's path; nil: the pacer does not answer
	plans    map[string]string    // their names, by the group's path
	version  string
}

// Gather makes the metrics, in the order of their names and labels. A group whose path cannot be told
// from that of another is left out, and counted: one double series would lose the whole scrape.
func (p gathering) Gather() ([]*dto.MetricFamily, error) {
	s := sink{}
	s.add(build, 1, labels("goversion", runtime.Version(), "version", p.version))
	s.add(watched, float64(p.snapshot.Watched), nil)
	if p.agent != nil {
		s.counts(*p.agent)
	}
	s.quotas(p.quotas)
	unread := p.snapshot.Unread
	seen := map[string]bool{}
	var groups []labelled
	for _, g := range p.snapshot.Groups {
		if !p.all && !g.Limited() && g.Paced == nil {
			continue
		}
		path := label(g.Path)
		if seen[path] {
			unread++
			continue
		}
		seen[path] = true
		groups = append(groups, labelled{path, g})
	}
	slices.SortFunc(groups, func(a, b labelled) int { return strings.Compare(a.path, b.path) }) // a label can differ from the path
	pods := podsOf(p.snapshot.Groups)
	for _, g := range groups {
		s.group(g.path, g.Group, pods, p.plans[g.Path], p.measured)
		if g.Paced != nil && g.Paced.Lapsed == "" && p.sums != nil {
			s.sum(g.path, g.Group, p.sums[g.Path])
		}
	}
	s.add(unreadable, float64(unread), nil)
	return slices.SortedFunc(maps.Values(s), func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }), nil
}

// A labelled group has its path as the value of a label.
type labelled struct {
	path string
	*watch.Group
}

// A sink takes metrics, by their names. Those of one name have to come in the order of their labels.
type sink map[string]*dto.MetricFamily

// add adds a metric. Metrics may share labels.
func (s sink) add(m Metric, value float64, labels []*dto.LabelPair) {
	f := s[m.Name]
	if f == nil {
		name, help := m.Name, m.Help
		f = &dto.MetricFamily{Name: &name, Help: &help, Type: &m.Type}
		s[m.Name] = f
	}
	metric := &dto.Metric{Label: labels}
	if m.Type == dto.MetricType_COUNTER {
		metric.Counter = &dto.Counter{Value: &value}
	} else {
		metric.Gauge = &dto.Gauge{Value: &value}
	}
	f.Metric = append(f.Metric, metric)
}

// labels makes labels of names, which have to be in their order, each with its value.
func labels(namesAndValues ...string) []*dto.LabelPair {
	var all []*dto.LabelPair
	for i := 0; i < len(namesAndValues); i += 2 {
		all = append(all, &dto.LabelPair{Name: &namesAndValues[i], Value: &namesAndValues[i+1]})
	}
	return all
}

// counts are those of weird run.
func (s sink) counts(c api.AgentCounts) {
	s.add(drifts, float64(c.Drifts), nil)
	s.add(repaired, float64(c.Repaired), nil)
	s.add(failures, float64(c.Failures), nil)
	s.add(missed, float64(c.Missed), nil)
	h := &dto.Histogram{SampleCount: &c.Applied.Count, SampleSum: &c.Applied.Seconds}
	for _, w := range c.Applied.Within {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &w.Seconds, CumulativeCount: &w.Count})
	}
	m := applied
	s[m.Name] = &dto.MetricFamily{Name: &m.Name, Help: &m.Help, Type: &m.Type, Metric: []*dto.Metric{{Histogram: h}}}
}

// podsOf are the names of Kubernetes' pods, NAMESPACE/NAME, by the paths of their groups.
func podsOf(groups []*watch.Group) map[string]string {
	pods := map[string]string{}
	for _, g := range groups {
		if name, is := strings.CutPrefix(g.Target, "pod:"); is {
			pods[g.Path] = name
		}
	}
	return pods
}

func (s sink) group(path string, g *watch.Group, pods map[string]string, plan string, measured map[limitOf]bool) {
	s.info(path, g, pods, plan)
	devices := map[string]watch.Device{}
	for _, d := range g.Devices {
		node := label(d.Node)
		if _, is := devices[node]; is { // two devices, one of them gone
			node = d.Number.String()
		}
		devices[node] = d
	}
	for _, node := range slices.Sorted(maps.Keys(devices)) {
		d := devices[node]
		s.device(path, node, d)
		for _, direction := range []string{"read", "write"} { // in their order
			if held, is := measured[limitOf{g.Path, d.Number, direction}]; is {
				s.add(limitHeld, truth(held), labels(cgroupLabel, path, deviceLabel, node, directionLabel, direction))
			}
		}
	}
	own := labels(cgroupLabel, path)
	if p := g.Pressure; p != nil {
		s.add(waiting, p.Total.Some.Seconds(), own)
		s.add(stalled, p.Total.Full.Seconds(), own)
	}
	if m := g.Memory; m != nil {
		s.add(dirty, float64(m.Dirty), own)
		s.add(writeback, float64(m.Writeback), own)
	}
	if p := g.Paced; p != nil && p.Lapsed == "" {
		s.add(paced, float64(p.WBPS), own)
	}
}

// sum is what the pacer has done to a group.
func (s sink) sum(path string, g *watch.Group, sum pacer.Sum) {
	s.add(throttled, sum.Paused.Seconds(), labels(cgroupLabel, path))
	nodes := map[string]uint64{}
	for n, bytes := range sum.Escaped {
		node := n.String()
		if i := slices.IndexFunc(g.Devices, func(d watch.Device) bool { return d.Number == n }); i >= 0 {
			node = label(g.Devices[i].Node)
		}
		nodes[node] += bytes
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		s.add(escaped, float64(nodes[node]), labels(cgroupLabel, path, deviceLabel, node))
	}
}

// info says who a group is.
func (s sink) info(path string, g *watch.Group, pods map[string]string, plan string) {
	of := map[string]string{cgroupLabel: path, "owner": g.Owner.Kind, targetLabel: label(g.Target)}
	if plan != "" {
		of[planLabel] = label(plan)
	}
	if c := g.InPod; c != (targets.InPod{}) {
		of["container"], of["namespace"], of["pod"] = label(c.Container), label(c.Namespace), label(c.Pod)
	} else if namespace, pod, is := strings.Cut(cmp.Or(pods[g.Path], pods[pathpkg.Dir(g.Path)]), "/"); is { // its own pod, or the one that it holds
		of["namespace"], of["pod"] = label(namespace), label(pod)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, name, of[name])
	}
	s.add(info, 1, labels(all...))
}

func (s sink) device(path, node string, d watch.Device) {
	own := labels(cgroupLabel, path, deviceLabel, node)
	if d.Counted {
		s.add(readBytes, float64(d.Total.ReadBytes), own)
		s.add(writtenBytes, float64(d.Total.WrittenBytes), own)
		s.add(reads, float64(d.Total.Reads), own)
		s.add(writes, float64(d.Total.Writes), own)
	}
	expected := map[string]bool{}
	for _, k := range limit.Keys {
		n, bound := d.Limit.Get(k).Number()
		if !bound {
			continue
		}
		s.add(limits()[k], float64(n), own)
		if d.Expected != nil {
			_, all := d.Holders(k)
			before, known := expected[k.Direction()]
			expected[k.Direction()] = all && (before || !known)
		}
	}
	for _, direction := range slices.Sorted(maps.Keys(expected)) {
		s.add(limitExpected, truth(expected[direction]), labels(cgroupLabel, path, deviceLabel, node, directionLabel, direction))
	}
}

// truth is 1 if something is so, else 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
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
