package cli

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/limit"
)

func resolve(t testing.TB, args ...string) ([]limit.Asked, error) {
	t.Helper()
	var l Limits
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	l.Register(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return l.Resolve()
}

func wbps(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }
func rbps(n uint64) limit.Limit { return limit.Limit{RBPS: limit.PerSecond(n)} }

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		args string
		want []limit.Asked
	}{
		{"", nil},
		{"--write 1", []limit.Asked{{On: "", Limit: wbps(1)}}},
		{"--write max", []limit.Asked{{On: "", Limit: limit.Limit{WBPS: limit.Unlimited}}}},
		{"--write 1 --on A", []limit.Asked{{On: "A", Limit: wbps(1)}}},
		{"--on A --write 1", []limit.Asked{{On: "A", Limit: wbps(1)}}},
		{"--write 1 --on A --on B", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: wbps(1)}}},
		{"--on A --on B --write 1", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: wbps(1)}}},
		{"--write 1 --read 2 --on A", []limit.Asked{{On: "A", Limit: wbps(1).Overlay(rbps(2))}}},
		{"--write 1 --on A --write 2 --on B", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: wbps(2)}}},
		{"--on A --write 1 --on B --write 2", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: wbps(2)}}},
		{"--on A --on B --write 1 --on C --read 2", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: wbps(1)}, {On: "C", Limit: rbps(2)}}},
		{"--device-write-bps A:1k", []limit.Asked{{On: "A", Limit: wbps(1024)}}},
		{"--device-write-bps 8:0:1", []limit.Asked{{On: "8:0", Limit: wbps(1)}}},
		{"--device-write-bps A:1 --device-read-bps A:2", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "A", Limit: rbps(2)}}},
		{"--device-write-bps A:1 --read 2 --on B", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: rbps(2)}}},
		{"--read 2 --device-write-bps A:1 --on B", []limit.Asked{{On: "A", Limit: wbps(1)}, {On: "B", Limit: rbps(2)}}},
	} {
		got, err := resolve(t, strings.Fields(c.args)...)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.args, got, err, c.want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for args, why := range map[string]string{
		"--on A":                                    "--on A: no limit is named",
		"--on A --write 1 --on B":                   "--on B: no limit is named",
		"--write 1 --write 2":                       "--write is given twice",
		"--on A --read-iops 1 --read-iops 1":        "--read-iops is given twice",
		"--write 1 --on A --read 1":                 "this limit has no --on",
		"--write 1 --device-read-bps A:1":           "this limit has no --on",
		"--device-read-bps A:1 --on A --on B":       "no limit is named",
		"--write 1 --on A --on B --read 1 --read 2": "--read is given twice",
	} {
		got, err := resolve(t, strings.Fields(args)...)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, %v; want %q", args, got, err, why)
		}
	}
}

// Each limit that comes out was named, and each place that was named comes out.
func FuzzResolve(f *testing.F) {
	f.Add([]byte("wA"))
	f.Add([]byte("AwBr"))
	f.Add([]byte("wAwBdr"))
	f.Fuzz(func(t *testing.T, order []byte) {
		var args []string
		places := map[string]bool{}
		for _, b := range order[:min(len(order), 32)] {
			switch b {
			case 'w':
				args = append(args, "--write", "1")
			case 'r':
				args = append(args, "--read", "1")
			case 'd':
				args = append(args, "--device-write-iops", "D:1")
				places["D"] = true
			default:
				place := "P" + string(rune('a'+b%26))
				args = append(args, "--on", place)
				places[place] = true
			}
		}
		got, err := resolve(t, args...)
		if err != nil {
			return
		}
		given := places
		places = maps.Clone(given)
		for _, l := range got {
			if l.Limit.IsZero() || l.On != "" && !given[l.On] {
				t.Fatalf("%v: %v", args, got)
			}
			delete(places, l.On)
		}
		if len(places) > 0 {
			t.Fatalf("%v: %v: nothing is on %v", args, got, places)
		}
	})
}
