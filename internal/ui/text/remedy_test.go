package text

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/ui/cli"
)

// A remedy is a command that a user copies: a name in it is one word.
func TestRemediesQuoteNames(t *testing.T) {
	if got := Remedy(fault.Remedy{Do: fault.AskWhy, Target: "cgroup:/a $(id)"}); got != "weir why 'cgroup:/a $(id)' says what helps" {
		t.Errorf("Remedy = %s", got)
	}
}

// A name in a remedy begins no line of what joined errors say.
func TestRemediesStayInTheirLine(t *testing.T) {
	const name = "/srv/x\nweir: all is held"
	of := func(do fault.Do) error {
		return fault.With(errors.New("it is down"), fault.Remedy{Do: do, Target: name, Also: name})
	}
	for _, do := range []fault.Do{fault.AskWhy, fault.AdoptedUnmount, fault.DropPlace} {
		if got := plain.Error(Error(errors.Join(of(do), of(do)))); strings.Count(got, "\n") != 1 || strings.Contains(got, "\nweir") || !strings.Contains(got, `/srv/x\nweir`) {
			t.Errorf("%v: %q", do, got)
		}
	}
}

// Nor does a name in an error that the command line says in other words, beside others.
func TestOtherWordsStayInTheirLine(t *testing.T) {
	const name = "cgroup:/x\nweir: all is held"
	kept := &keep.Refused{Target: name, Kind: fault.WrongUse, Why: "it ends", Remedy: fault.Remedy{Do: fault.DoNotKeep}}
	for _, err := range []error{errors.Join(kept, kept), fmt.Errorf("x: %w", errors.Join(errors.New(name), kept, errors.New("last")))} {
		joined := strings.Count(plain.Error(err), "\n")
		if got := plain.Error(Error(err)); strings.Count(got, "\n") != joined || joined == 0 || strings.Contains(got, "\nweir") || !strings.Contains(got, `set cgroup:/x\nweir: all is held --persist: it ends; leave out`) {
			t.Errorf("%q", got)
		}
	}
}

// inOtherWords says what an error says in other words.
type inOtherWords struct {
	error
	text string
}

func (e *inOtherWords) Error() string { return e.text }
func (e *inOtherWords) Unwrap() error { return e.error }

func TestError(t *testing.T) {
	shared := fault.With(errors.New("pid:7 shares its group"), fault.Remedy{Do: fault.LimitAll})
	kept := &keep.Refused{Target: "pid:7", Kind: fault.WrongUse, Why: "it ends", Remedy: fault.Remedy{Do: fault.DoNotKeep}}
	const all = "pid:7 shares its group; add --whole-cgroup if you mean all of them, or start the command with weir run"
	for _, c := range []struct {
		err  error
		want string
		code int
	}{
		{errors.New("x"), "x", 1},
		{shared, all, 1},
		{fmt.Errorf("restore x: %w", shared), "restore x: " + all, 1},
		{kept, "set pid:7 --persist: it ends; leave out --persist", 2},
		{&keep.Refused{Target: "pid:7", Kind: fault.NotPossible, Why: "it ends"}, "set pid:7 --persist: it ends", 3},
		{fault.With(&fault.Unsupported{Feature: "limit", Reason: "no disk"}, fault.Remedy{Do: fault.NameDisk}), "limit: no disk; name a disk with --on", 3},
		// The same error twice has its remedy twice, each in its place.
		{errors.Join(fmt.Errorf("a: %w", shared), errors.New("b"), fmt.Errorf("c: %w", shared)), "a: " + all + "\nb\nc: " + all, 1},
		{&inOtherWords{fmt.Errorf("cause: %w", shared), "why: pid:7 shares its group!"}, "why: " + all + "!", 1},
		{errors.Join(shared, kept), all + "\nset pid:7 --persist: it ends; leave out --persist", 2},
	} {
		got := Error(c.err)
		if got.Error() != c.want || cli.ExitCode(got) != c.code || !errors.Is(got, c.err) {
			t.Errorf("%q, %d; want %q, %d", got, cli.ExitCode(got), c.want, c.code)
		}
		if said := plain.Error(got); said != c.want { // as it is printed
			t.Errorf("said as %q, want %q", said, c.want)
		}
		if again := Error(fmt.Errorf("x: %w", got)); again.Error() != "x: "+c.want {
			t.Errorf("spelled twice: %q", again)
		}
	}
	if got := Error(errors.Join(shared, Error(kept), shared)).Error(); got != all+"\nset pid:7 --persist: it ends; leave out --persist\n"+all {
		t.Errorf("one of them spelled already: %q", got)
	}
	if Error(nil) != nil {
		t.Error("nothing is an error")
	}
}

// Each thing to do has words, and they name the target where they need one.
func TestRemedies(t *testing.T) {
	files, err := filepath.Glob("../../fault/remedy*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\t\w+ +Do = "([a-z0-9-]+)"`).FindAllStringSubmatch(string(source), -1) {
			if seen++; Remedy(fault.Remedy{Do: fault.Do(m[1]), Target: "unit:x"}) == "" {
				t.Errorf("%s has no words", m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("the sources name %d things to do", seen)
	}
	for want, r := range map[string]fault.Remedy{
		"": {},
		"weir why docker:x --mend moves it to docker:x's group":                                                          {Do: fault.Mend, Target: "docker:x"},
		"use a directory on one of those, or a volume, which has a size of its own: weir volume create NAME --size SIZE": {Do: fault.UseVolume},
		"weir clear removes it": {Do: fault.Clear},
		"unmount /srv yourself, or let weir forget it: weir volume delete data":            {Do: fault.AdoptedUnmount, Target: "data", Also: "/srv"},
		"if you replaced it, for example from a backup: weir volume up data --accept-file": {Do: fault.AcceptFile, Target: "data"},
		"weir why 'cgroup:/5% %[2]s' says what helps":                                      {Do: fault.AskWhy, Target: "cgroup:/5% %[2]s"}, // a name is no format
	} {
		if got := Remedy(r); got != want {
			t.Errorf("%+v is %q, want %q", r, got, want)
		}
	}
}

func TestNotes(t *testing.T) {
	var said bytes.Buffer
	out := cli.Out{Messages: &said}
	Notes(&out, []note.Note{note.Infof("a", "one"), note.Warningf("b", "two").With(fault.Remedy{Do: fault.Keep})})
	if want := "weir: one\nweir: warning: two; add --persist to keep it\n"; said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
}
