package hold

import (
	"errors"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// asked is a pacer that notes what it is asked.
type asked struct {
	times int
	how   *limit.Pacing
	fails error
}

func (a *asked) Follow(_ cgroupfs.Group, how *limit.Pacing) error {
	a.times, a.how = a.times+1, how
	return a.fails
}

// A change of a dead weir that the pacer was asked about is on record with how the pacer counted
// before, and that is what it is asked again. While it cannot be had the record stays.
func TestThePacerFollowsWhatIsTakenBack(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	p.Unit = ""
	p.Changes[0].Limit = writes(7)
	for _, before := range []*limit.Pacing{nil, {Count: "escaped", KeptIn: []string{"/x"}}} {
		p.Pacing = &Pacing{Before: before}
		abandonFile(t, p, dir)
		fails := &asked{fails: errors.New("no pacer")}
		if err := undoAsking(t, dir, p, fails); !errors.Is(err, fails.fails) || records(t, dir) != 1 {
			t.Errorf("without a pacer: %v, %d records; want its error and the record", err, records(t, dir))
		}
		has := &asked{}
		if err := undoAsking(t, dir, p, has); err != nil || has.times != 1 || records(t, dir) != 0 {
			t.Errorf("%v, asked %d times, %d records left", err, has.times, records(t, dir))
		}
		if !reflect.DeepEqual(has.how, before) {
			t.Errorf("asked to hold it as %v, want %v", has.how, before)
		}
	}
	p.Pacing = nil
	abandonFile(t, p, dir)
	never := &asked{}
	if err := undoAsking(t, dir, p, never); err != nil || never.times != 0 {
		t.Errorf("%v; a pacer that the change has nothing to do with was asked %d times", err, never.times)
	}
}

// abandonFile leaves a record of a plan that weir writes itself.
func abandonFile(t *testing.T, p Plan, dir state.Dir) {
	t.Helper()
	entry, err := journalOf(p)
	if err != nil {
		t.Fatal(err)
	}
	record, err := dir.New(journalKind, entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
}

func undoAsking(t *testing.T, dir state.Dir, p Plan, by Pacer) error {
	t.Helper()
	return Holder{State: dir, Pacer: by}.undo(hierarchiesOf(t, p.Group), unreachable)
}
