package space

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/target/unit"
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
		if err := v.alone(t); err != nil {
			return err
		}
		if t.Group.IsRoot() {
			return &RootTargetError{spec}
		}
	}
	return nil
}
