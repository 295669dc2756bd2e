package planfile

import (
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/plans"
	"go.yaml.in/yaml/v3"
)

// kinds are those that an assignment can name.
var kinds = []string{"docker", "podman", "containerd", "pod", "unit", "user", "vm"}

// unitSuffixes are those of units that can have limits.
var unitSuffixes = []string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}

func (b *building) assignment(n *yaml.Node) {
	a := plans.Assignment{At: b.at(n)}
	if len(b.config.Assignments) == assignmentsMax {
		b.refuse(n, "there are more than %d assignments", assignmentsMax)
		return
	}
	before := len(b.refusals)
	var known []field
	for _, kind := range kinds {
		known = append(known, field{kind, func(n *yaml.Node) { b.kind(n, &a, kind) }})
	}
	b.fields(n, "assign", append(known,
		field{"label", func(n *yaml.Node) { b.labels(n, &a) }},
		field{"plan", func(n *yaml.Node) {
			if name, ok := b.text(n, "plan"); ok {
				a.Plan = name
				b.name(n, name, "assign")
			}
		}})...)
	if len(b.refusals) > before {
		return
	}
	if !has(n, "plan") {
		b.refuse(n, "assign has no plan: write plan: NAME")
	}
	found := slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return !has(n, k) })
	switch {
	case len(found) > 1:
		b.refuse(n, "assign names %s, and a target is of one kind; write one entry for each", strings.Join(found, " and "))
	case len(found) == 0 && !has(n, "label"):
		b.refuse(n, "assign does not say which targets: write %s or label", strings.Join(kinds, ", "))
	case len(found) == 1 && has(n, "label") && !plans.Labelled(found[0]):
		b.refuse(n, "a %s has no labels; leave label out", found[0])
	}
	b.config.Assignments = append(b.config.Assignments, a)
}

// kind reads which targets of a kind are meant.
func (b *building) kind(n *yaml.Node, a *plans.Assignment, kind string) {
	a.Kind = kind
	switch kind {
	case "pod":
		b.fields(n, "pod", field{"namespace", func(n *yaml.Node) { a.Namespace = b.pattern(n, "namespace") }},
			field{"name", func(n *yaml.Node) { a.Name = b.pattern(n, "name") }})
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			b.refuse(n, "pod names nothing: write namespace, name or both")
		}
	case "user":
		ok := n.Kind == yaml.ScalarNode && slices.Contains([]string{"!!int", "!!str"}, n.ShortTag())
		if ok {
			a.From, a.To, ok = users(n.Value)
		}
		if !ok {
			b.refuse(n, "user is a number or a range of numbers: write 1000 or \"1000-1999\"")
		}
	case "unit":
		if a.Name = b.pattern(n, kind); a.Name != "" && !slices.ContainsFunc(unitSuffixes, func(s string) bool { return strings.HasSuffix(a.Name, s) }) {
			b.refuse(n, "unit %s: write the whole name, such as nginx.service; it ends in %s", short(a.Name), either(unitSuffixes))
		}
	default:
		a.Name = b.pattern(n, kind)
	}
}

func (b *building) pattern(n *yaml.Node, what string) string {
	text, ok := b.text(n, what)
	if ok && !isPattern(text) {
		b.refuse(n, "%s: %s is no pattern: * stands for any text, ? for one character, [a-z] for one of these", what, short(text))
	}
	return text
}

func (b *building) labels(n *yaml.Node, a *plans.Assignment) {
	all := b.entries(n, "label")
	if n.Kind == yaml.MappingNode && (len(n.Content) == 0 || len(all) > labelsMax) {
		b.refuse(n, "label has %d entries; write 1 to %d", len(n.Content)/2, labelsMax)
		return
	}
	a.Labels = map[string]string{}
	for _, e := range all {
		if e.name == "" {
			b.refuse(e.key, "label has a key without a name")
		}
		if e.value.Kind == yaml.ScalarNode && e.value.ShortTag() == "!!str" && e.value.Value == "" {
			a.Labels[e.name] = "" // a label can be empty
		} else if text, ok := b.text(e.value, "the label "+short(e.name)); ok {
			a.Labels[e.name] = text
		}
	}
}
