package agent

import (
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/lab"
)

// A trouble that lasts is told once, whatever it is, and again when it comes back.
func TestTroubleIsToldOnce(t *testing.T) {
	lab.Unit(t)
	told := ""
	for i, step := range []struct {
		err  error
		news bool
	}{
		{tree.NoInstance(), true}, {tree.NoInstance(), false}, {tree.NoInstance(), false},
		{fs.ErrNotExist, true}, {&fs.PathError{Op: "watch", Path: "/etc/weir", Err: unix.ENOENT}, false},
		{tree.NoInstance(), true}, {nil, true}, {nil, false}, {tree.NoInstance(), true}, {tree.NoInstance(), false},
	} {
		if news := isNews(&told, step.err); news != step.news {
			t.Errorf("%d, %v: news %t", i, step.err, news)
		}
	}
}
