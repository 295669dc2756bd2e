package prove

import (
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// An UnreachableError says that a target has no directory of a name, or cannot write there.
type UnreachableError struct{ Dir string }

func (e *UnreachableError) Error() string {
	return e.Dir + ": the target has no such directory, or cannot write there"
}

// Class makes it wrong use.
func (e *UnreachableError) Class() fault.Class { return fault.WrongUse }

// refused says why a target cannot be proved, and what the user can do.
func refused(target, reason string, do fault.Do) error {
	return fault.With(&fault.Unsupported{Feature: "prove " + target, Reason: reason}, fault.Remedy{Do: do, Target: target})
}

// noRoom says that a proof cannot write in a directory with so many bytes free, or that is
// mounted read-only.
func noRoom(dir string, readOnly bool, free int64) error {
	if readOnly {
		return fault.With(fmt.Errorf("%s is mounted read-only", dir), fault.Remedy{Do: fault.NameDir})
	}
	return fault.With(fmt.Errorf("%s has %s free, but a proof needs %s", dir, limit.FormatMeasured(float64(free)), limit.FormatMeasured(keep+8*mega)),
		fault.Remedy{Do: fault.NameOtherDir})
}
