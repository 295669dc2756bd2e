package planfile

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plans"
)

// Read reads the files of a configuration, in their order. The error is made of *Refusal, the
// first 20 of them; there is no Config then.
func Read(files []plans.File) (*plans.Config, error) {
	b := &building{config: &plans.Config{Default: plans.None}}
	if len(files) > plans.FilesMax {
		r := &reader{file: files[plans.FilesMax].Name}
		r.whole("these are %d files, and at most %d are possible", len(files), plans.FilesMax)
		return nil, r.refusals[0]
	}
	for _, f := range files {
		b.reader = &reader{file: f.Name}
		b.config.Files = append(b.config.Files, f.Name)
		if tree := b.document(f.Text); tree != nil {
			b.read(tree)
		}
		b.refused = append(b.refused, b.refusals...)
	}
	if len(b.refused) == 0 {
		b.refer()
	}
	if n := len(b.refused); n > 0 {
		return nil, errors.Join(b.refused[:min(n, refusalsMax)]...)
	}
	return b.config, nil
}

// building is a configuration that is being read.
type building struct {
	*reader // of the file that is being read
	config  *plans.Config
	refused []error
	named   []named  // plans by name, to be found once all files are read
	usual   *named   // nil: no file has one yet
	extends []*named // of the plans, by their index; nil: none
}

// named is a place that names a plan.
type named struct {
	name, what string
	at         plans.Position
}

func (b *building) read(tree *yaml.Node) {
	b.fields(tree, "the file",
		field{"plans", b.plans},
		field{"assign", func(n *yaml.Node) { b.list(n, "assign", assignmentsMax, b.assignment) }},
		field{"allow-labels", func(n *yaml.Node) { b.list(n, "allow-labels", plansMax, b.allow) }},
		field{"default", func(n *yaml.Node) {
			name, ok := b.text(n, "default")
			if ok && b.usual != nil {
				b.refuse(n, "default is given twice, first in %s", b.usual.at)
			} else if ok {
				b.config.Default, b.usual = name, b.name(n, name, "default")
			}
		}})
}

// name notes that a place names a plan.
func (b *building) name(n *yaml.Node, name, what string) *named {
	one := named{name, what, b.at(n)}
	b.named = append(b.named, one)
	return &one
}

func (b *building) plans(n *yaml.Node) {
	for _, e := range b.entries(n, "plans") {
		switch was, there := b.config.Plan(e.name); {
		case e.name == plans.None:
			b.refuse(e.key, `no plan can have the name "none", which means no plan`)
		case !isName(e.name):
			b.refuse(e.key, "%s is no name for a plan: write at most %d of a-z, A-Z, 0-9 and _ . -, a letter or digit first", short(e.name), nameMax)
		case there:
			b.refuse(e.key, "plan %s is given twice, first in %s", e.name, was.At)
		case len(b.config.Plans) == plansMax:
			b.refuse(e.key, "there are more than %d plans", plansMax)
		default:
			b.plan(e)
		}
	}
}

func (b *building) plan(e entry) {
	p := plans.Plan{Name: e.name, At: b.at(e.key)}
	var extends *named
	what := "plan " + e.name
	known := append(b.rates(&p.Limit),
		field{"extends", func(n *yaml.Node) {
			if name, ok := b.text(n, "extends"); ok {
				p.Extends, extends = name, &named{name, what, b.at(n)}
			}
		}},
		field{"on", func(n *yaml.Node) {
			b.list(n, "on", onMax, func(n *yaml.Node) { b.place(n, &p) })
		}})
	b.fields(e.value, what, known...)
	if e.value.Kind == yaml.MappingNode && len(e.value.Content) == 0 {
		b.refuse(e.value, "%s has no limit: write read, write, read-iops, write-iops, on or extends", what)
	}
	b.config.Plans, b.extends = append(b.config.Plans, p), append(b.extends, extends)
}

// place reads one entry of on.
func (b *building) place(n *yaml.Node, p *plans.Plan) {
	one := limit.Asked{}
	before := len(b.refusals)
	b.fields(n, "on", append([]field{{"path", func(n *yaml.Node) {
		one.On, _ = b.text(n, "path")
	}}}, b.rates(&one.Limit)...)...)
	if len(b.refusals) > before {
		return
	}
	if !has(n, "path") {
		b.refuse(n, "on has no path: write path: a path or a device")
	}
	if !has(n, "read") && !has(n, "write") && !has(n, "read-iops") && !has(n, "write-iops") {
		b.refuse(n, "on has no limit: write read, write, read-iops or write-iops")
	}
	if one.On != "" && slices.ContainsFunc(p.On, func(a limit.Asked) bool { return a.On == one.On }) {
		b.refuse(n, "%s is given twice in one plan", short(one.On))
	}
	p.On = append(p.On, one)
}

// has reports whether a mapping has a key, whatever its value is.
func has(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// rates are the keys of a limit, which are spelled as the flags of the command line are.
func (b *building) rates(into *limit.Limit) []field {
	rate := func(key string, k limit.Key, parse func(string) (limit.Rate, error)) field {
		return field{key, func(n *yaml.Node) {
			if n.Kind != yaml.ScalarNode || !slices.Contains([]string{"!!str", "!!int", "!!float"}, n.ShortTag()) {
				b.refuse(n, "%s is a rate: write 10MB/s, 500 or max", key)
				return
			}
			if len(n.Value) > nameMax {
				b.refuse(n, "%s is no rate: it has %d bytes", key, len(n.Value))
				return
			}
			r, err := parse(n.Value)
			if err != nil {
				b.refuse(n, "%s: %v", key, err)
				return
			}
			*into = into.With(k, r)
		}}
	}
	return []field{
		rate("read", limit.RBPS, limit.ParseBytes), rate("write", limit.WBPS, limit.ParseBytes),
		rate("read-iops", limit.RIOPS, limit.ParseOps), rate("write-iops", limit.WIOPS, limit.ParseOps),
	}
}

func (b *building) allow(n *yaml.Node) {
	name, ok := b.text(n, "allow-labels")
	switch {
	case !ok:
	case name == plans.None:
		b.refuse(n, `allow-labels: a target cannot choose "none": that would lift its limits`)
	default:
		b.name(n, name, "allow-labels")
		if !slices.Contains(b.config.AllowLabels, name) {
			b.config.AllowLabels = append(b.config.AllowLabels, name)
		}
	}
}

// isName reports whether a plan can have a name: it becomes a word of a command line and of a label.
func isName(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return text != "" && len(text) <= nameMax
}

// users reads "1000" or "1000-1999".
func users(text string) (from, to uint32, ok bool) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 32)
	z, errZ := strconv.ParseUint(last, 10, 32)
	return uint32(a), uint32(z), errA == nil && errZ == nil && a <= z && isDigits(first) && isDigits(last)
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// isPattern reports whether path.Match takes a pattern.
func isPattern(text string) bool {
	_, err := path.Match(text, "")
	return err == nil
}
