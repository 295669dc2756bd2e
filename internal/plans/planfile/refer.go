package planfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plans"
)

// refer finds the plans that are named, and adds to each plan what it extends.
func (b *building) refer() {
	names := b.config.Names()
	missing := func(one named) bool {
		if len(b.refused) >= refusalsMax || slices.Contains(names, one.name) { // to look for what was meant takes a while
			return false
		}
		b.refused = append(b.refused, &plans.Refusal{At: one.at, Text: one.what + ": there is no plan " + short(one.name) + "; " + instead(one.name, names)})
		return true
	}
	for _, one := range b.named {
		if one.name != plans.None {
			missing(one)
		}
	}
	for _, one := range b.extends {
		if one != nil {
			missing(*one)
		}
	}
	if len(b.refused) > 0 {
		return
	}
	done := make([]bool, len(names))
	for i := range names {
		b.extend(i, done)
	}
	for _, p := range b.config.Plans {
		if len(b.refused) == 0 && p.Limit.IsZero() && len(p.On) == 0 {
			b.refused = append(b.refused, &plans.Refusal{At: p.At, Text: "plan " + p.Name + " has no limit"})
		}
	}
}

// extend completes a plan, after all that it extends. It follows the chain in a loop, because a
// chain may be as long as there are plans.
func (b *building) extend(i int, done []bool) {
	all := b.config.Plans
	index := func(name string) int { return slices.IndexFunc(all, func(p plans.Plan) bool { return p.Name == name }) }
	chain := []int{}
	for !done[i] {
		if at := slices.Index(chain, i); at >= 0 {
			b.loop(append(chain[at:], i))
			break
		}
		chain = append(chain, i)
		if b.extends[i] == nil {
			break
		}
		i = index(all[i].Extends)
	}
	for _, i := range slices.Backward(chain) {
		done[i] = true
		p := &all[i]
		if p.Extends == "" {
			continue
		}
		if over(p, all[index(p.Extends)]); len(p.On) > onMax { // else a long chain would fill the memory
			p.On = p.On[:onMax]
			b.refused = append(b.refused, &plans.Refusal{At: p.At, Text: fmt.Sprintf("plan %s has more than %d places, with those of the plans that it extends", p.Name, onMax)})
		}
	}
}

// loop refuses plans that extend each other.
func (b *building) loop(chain []int) {
	var names []string
	for _, i := range chain[:min(len(chain), 20)] {
		names = append(names, b.config.Plans[i].Name)
	}
	first := chain[0]
	b.refused = append(b.refused, &plans.Refusal{At: b.extends[first].at, Text: "plans extend each other in a loop: " + strings.Join(names, " extends ")})
}

// over puts a plan's own rates over those of another one.
func over(p *plans.Plan, base plans.Plan) {
	p.Limit = base.Limit.Overlay(p.Limit)
	own := p.On
	p.On = slices.Clone(base.On)
	for _, one := range own {
		if i := slices.IndexFunc(p.On, func(a limit.Asked) bool { return a.On == one.On }); i >= 0 {
			p.On[i].Limit = p.On[i].Limit.Overlay(one.Limit)
		} else {
			p.On = append(p.On, one)
		}
	}
}
