package source

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
)

// What is wrong with single records and targets alone is beside the others.
func TestIsBeside(t *testing.T) {
	damaged, unread, other := &state.DamagedError{Path: "x", Err: errors.New("y")}, &targets.UnreadError{Target: "x"}, errors.New("busy")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {other, false}, {damaged, true}, {unread, true}, {fmt.Errorf("limits: %w", damaged), true},
		{errors.Join(damaged, unread), true}, {errors.Join(errors.Join(nil, damaged), fmt.Errorf("x: %w", unread)), true},
		{errors.Join(damaged, other), false}, {errors.Join(errors.Join(unread, other), damaged), false},
	} {
		if got := isBeside(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}
