package space

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/targets/unit"
)

// A RootTargetError says that a volume's limit was asked for on the root group too.
type RootTargetError struct{ Target string }

func (e *RootTargetError) Error() string {
	return fmt.Sprintf("%s is the root group: cgroup v1 limits it anyway, and cgroup v2 cannot limit it; leave it out", e.Target)
}

// Class makes it fault.WrongUse.
func (e *RootTargetError) Class() fault.Class { return fault.WrongUse }

// checkTargets refuses targets that are not there, before anything is made for them.
func (v Volumes) checkTargets(ctx context.Context, specs []string) error {
	for _, spec := range specs {
		t, err := v.Host.Target(ctx, spec)
		var none *unit.NoGroupError
		if errors.As(err, &none) {
			continue // systemd makes it one
		}
		if err != nil {
			return err
		}
		if err := limiting.Alone(t, false); err != nil {
			return err
		}
		if t.Group.IsRoot() {
			return &RootTargetError{spec}
		}
	}
	return nil
}

// A Limited is what came of the limit of a volume on one of the targets that it is for.
type Limited struct {
	Result limiting.Result
	Err    error // why it is not limited; the result has what was noted until then
}

// LimitTargets sets a limit of a volume that is up on the targets that the volume is for, up to
// the first that cannot be limited. If the volume's own limit is being changed, l includes the
// removed rates. foreign looks for files of other groups that the targets write to.
func (v Volumes) LimitTargets(ctx context.Context, of Volume, l limit.Limit, foreign bool) (all []Limited) {
	if l.IsZero() {
		return nil
	}
	m := limiting.Manager{Host: v.Host}
	for _, spec := range of.For {
		r, err := m.Set(ctx, limiting.Request{Target: spec, Asked: []limit.Asked{{On: of.Mount, Limit: l}}, Foreign: foreign})
		if all = append(all, Limited{r, err}); err != nil {
			break
		}
	}
	return all
}
