package pacer

import (
	"github.com/weir-io/weir/internal/cgroupfs"
)

// Hold makes the pacer hold what a group's rules say now, with the given way to count. With a
// nil count, or rules without a write rate, it releases the group. note says what to know about
// the accuracy.
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
