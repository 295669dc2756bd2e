package main

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/prove"
)

// What the core refuses has a remedy in flags, and its exit code.
func TestProveRefused(t *testing.T) {
	for want, c := range map[string]struct {
		err  error
		code int
	}{
		"prove --on /x: name a directory, where a file without a name can be made":                                             {&load.NoDirError{Dir: "/x"}, 2},
		"prove --on /x: the target has no such directory, or cannot write there":                                               {&prove.UnreachableError{Dir: "/x"}, 2},
		"/x is mounted read-only; name a directory with --on":                                                                  {&prove.RoomError{Dir: "/x", ReadOnly: true}, 1},
		"/x has 0 B free, but weir prove needs 75.5 MB; name another directory with --on":                                      {&prove.RoomError{Dir: "/x"}, 1},
		"prove: none of the limits can be tried this way; see the notes, and --paths":                                          {&prove.Refusal{Code: prove.NoRows, Feature: "prove", Reason: "none of the limits can be tried this way"}, 3},
		"prove pid:1: no disk; name a directory with --on DIR, or watch the target's own I/O with --observe 10s":               {&prove.Refusal{Code: prove.NoSpot, Target: "pid:1", Feature: "prove pid:1", Reason: "no disk"}, 3},
		"prove pid:1: no limit; set one with weir set pid:1 --write 10MB/s, or leave out the target to measure in a new group": {&prove.Refusal{Code: prove.NoLimit, Target: "pid:1", Feature: "prove pid:1", Reason: "no limit"}, 3},
		"of another kind": {errors.New("of another kind"), 1},
	} {
		got := proveRefused(c.err)
		if got.Error() != want || cli.ExitCode(got) != c.code {
			t.Errorf("%q, %d; want %q, %d", got, cli.ExitCode(got), want, c.code)
		}
	}
}
