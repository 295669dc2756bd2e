package pacer

import (
	"errors"
	"path"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Hold makes the pacer hold what a group's rules say now. With a nil how, or rules without a
// write rate, it releases the group. note says what to know about the accuracy.
func (c Client) Hold(g cgroupfs.Group, how *limit.Pacing) (note string, err error) {
	if how == nil {
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
	j.Count, j.KeptIn = how.Count, how.KeptIn
	return c.Add(j)
}

// Follow is Hold without a note.
func (c Client) Follow(g cgroupfs.Group, how *limit.Pacing) error {
	_, err := c.Hold(g, how)
	return err
}

// Forget has the pacer wait no longer for a group of this name, which is gone.
func (c Client) Forget(name string) error {
	jobs, err := readable(c.State)
	errs := []error{err}
	for _, j := range jobs {
		if j.again() && j.Lapsed != "" && path.Base(j.Limited.Path) == name {
			errs = append(errs, c.Remove(j.Limited))
		}
	}
	return errors.Join(errs...)
}

// Pacing is how a job has its group held; nil: there is no job.
func (j *Job) Pacing() *limit.Pacing {
	if j == nil {
		return nil
	}
	return &limit.Pacing{Count: j.Count, KeptIn: j.KeptIn}
}
