package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/ptytest"
)

// errEnd ends what is repeated.
var errEnd = errors.New("gone")

// times prints with do so many times, and then ends.
func times(n int, do func(i int)) func(context.Context) error {
	i := 0
	return func(context.Context) error {
		if i++; i > n {
			return errEnd
		}
		do(i)
		return nil
	}
}

func TestRepeat(t *testing.T) {
	for json, want := range map[bool]string{false: "1 a\n\n2 a\n\n3 a\n", true: `{"n":1}` + "\n" + `{"n":2,"messages":[{"level":"note","text":"x"}]}` + "\n" + `{"n":3,"messages":[{"level":"note","text":"x"}]}` + "\n"} {
		var data, messages strings.Builder
		o := Out{Data: &data, Messages: &messages, JSON: json}
		err := o.Repeat(t.Context(), 0, times(3, func(i int) {
			if i > 1 {
				o.Say("note: x")
			}
			if !json {
				o.Print("%d %s", i, "a")
			} else if err := o.Document(map[string]int{"n": i}); err != nil {
				t.Error(err)
			}
		}))
		if !errors.Is(err, errEnd) || data.String() != want || messages.String() != "weir: note: x\n" {
			t.Errorf("JSON %t: %v, %q, %q; want %q", json, err, data.String(), messages.String(), want)
		}
		if o.Data != &data || o.Messages != &messages {
			t.Error("it writes elsewhere afterwards")
		}
	}
}

// One begins a time after the last began, or later.
func TestRepeatWaits(t *testing.T) {
	const every = 30 * time.Millisecond
	o := Out{Data: &strings.Builder{}, Messages: &strings.Builder{}}
	began := time.Now()
	if err := o.Repeat(t.Context(), every, times(3, func(int) {})); !errors.Is(err, errEnd) {
		t.Error(err)
	}
	if took := time.Since(began); took < 3*every {
		t.Errorf("four took %v", took)
	}
}

// A full disk behind standard output ends it.
func TestRepeatEndsWithItsOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	o := Out{Data: full, Messages: &strings.Builder{}}
	if err := o.Repeat(t.Context(), 0, func(context.Context) error { o.Print("x"); return nil }); !errors.Is(err, unix.ENOSPC) || !errors.Is(o.Err(), unix.ENOSPC) {
		t.Errorf("%v, %v", err, o.Err())
	}
}

// On a terminal each takes the place of the last, cut to the terminal's rows. Ctrl-C ends it without
// an error, while it prints and while it waits.
func TestRepeatOnATerminal(t *testing.T) {
	for _, every := range []time.Duration{0, time.Hour} {
		term := ptytest.New(t, 40)
		o := Out{Data: term.Slave, Messages: term.Slave}
		many := strings.Repeat("line\n", 30)
		ended := make(chan error, 1)
		go func() {
			n := 0
			ended <- o.Repeat(t.Context(), every, func(ctx context.Context) error {
				switch n++; {
				case n == 1 && every == 0:
					o.Say("note: beside it")
					o.Print("%s\nwide", strings.Repeat("w", 41))
				case n == 2:
					o.Text(many)
				case n == 3:
					o.Print("short")
				case n > 3:
					<-ctx.Done()
					return fmt.Errorf("measure: %w", ctx.Err())
				default:
					o.Print("waits")
				}
				return nil
			})
		}()
		if every == 0 {
			cut := strings.Repeat("line\r\n", 22) + "… 8 more lines\r\n"
			term.Await("weir: note: beside it\r\n" + strings.Repeat("w", 41) + "\r\nwide\r\n\r\x1b[3A\x1b[J" + cut + "\r\x1b[23A\x1b[Jshort\r\n")
		} else {
			term.Await("waits\r\n")
		}
		if err := unix.Kill(os.Getpid(), unix.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil || o.Err() != nil {
				t.Errorf("Ctrl-C: %v, %v", err, o.Err())
			}
		case <-time.After(ptytest.Most):
			t.Fatal("Ctrl-C does not end it")
		}
	}
}

// Where no line fits, the first is shown.
func TestFit(t *testing.T) {
	wide := strings.Repeat("w", 90)
	for _, c := range []struct {
		lines, want []string
		most        int
	}{
		{[]string{"a", "b"}, []string{"a", "b"}, 2},
		{[]string{"a", "b", "c"}, []string{"a", "… 2 more lines"}, 2},
		{[]string{"a", wide}, []string{"a", "… 1 more line"}, 2},
		{[]string{wide, "b"}, []string{wide}, 2},
		{[]string{"", ""}, []string{""}, 1},
	} {
		if got := fit(c.lines, 40, c.most); !slices.Equal(got, c.want) {
			t.Errorf("fit(%q, %d) = %q, want %q", c.lines, c.most, got, c.want)
		}
	}
}
