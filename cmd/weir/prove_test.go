package main

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// What the core refuses has a remedy in flags, and its exit code.
func TestRefusedInFlags(t *testing.T) {
	none := func(reason string) error { return &fault.Unsupported{Feature: "prove pid:1", Reason: reason} }
	for want, c := range map[string]struct {
		err  error
		code int
	}{
		"prove --on /x: name a directory, where a file without a name can be made":                               {&load.NoDirError{Dir: "/x"}, 2},
		"prove --on /x: the target has no such directory, or cannot write there":                                 {&prove.UnreachableError{Dir: "/x"}, 2},
		"/x is mounted read-only; name a directory with --on":                                                    {fault.With(errors.New("/x is mounted read-only"), fault.Remedy{Do: fault.NameDir}), 1},
		"/x is full; name another directory with --on":                                                           {fault.With(errors.New("/x is full"), fault.Remedy{Do: fault.NameOtherDir}), 1},
		"prove pid:1: none; choose other --paths; the notes say why these cannot be tried":                       {fault.With(none("none"), fault.Remedy{Do: fault.OtherKinds}), 3},
		"prove pid:1: no disk; name a directory with --on DIR, or watch the target's own I/O with --observe 10s": {fault.With(none("no disk"), fault.Remedy{Do: fault.NameSpot}), 3},
		"prove pid:1: no limit; set one with weir set pid:1 --write 10MB/s, or leave out the target to measure in a new group": {
			fault.With(none("no limit"), fault.Remedy{Do: fault.SetFirst, Target: "pid:1"}), 3},
		"prove pid:1: full; write --size 1GiB or less, or name another directory": {fault.With(none("full"), fault.Remedy{Do: fault.WriteLess, Target: "1GiB"}), 3},
		"prove pid:1: x; weir why pid:1 says why":                                 {fault.With(none("x"), fault.Remedy{Do: fault.TellWhy, Target: "pid:1"}), 3},
		"of another kind": {errors.New("of another kind"), 1},
	} {
		got := text.Error(proveRefused(c.err))
		if got.Error() != want || cli.ExitCode(got) != c.code {
			t.Errorf("%q, %d; want %q, %d", got, cli.ExitCode(got), want, c.code)
		}
	}
}
