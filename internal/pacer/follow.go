package pacer

import (
	"github.com/weir-io/weir/internal/cgroupfs"
)

// Hold has the pacer hold what the rules of a group say now, counted so; nil, or rules without
// a rate of writing, have it let the group go. note is what there is to say of the accuracy.
func (c Client) Hold(g cgroupfs.Group, count *string) (note string, err error) {
	if count == nil {
		return "", c.Remove(PlaceOf(g, "blkio"))
	}
	rules, err := g.RulesIfAny()
	if err != nil && !cgroupfs.IsGone(err) {
		return "", err
	}
	j, some := JobFor(g, rules)
	if !some {
		return "", c.Remove(j.Limited)
	}
	j.Count = *count
	return c.Add(j)
}

// Follow is Hold without a note.
func (c Client) Follow(g cgroupfs.Group, count *string) error {
	_, err := c.Hold(g, count)
	return err
}
