package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"one two three", "one two\nthree"},
		{"one\ntwo three four", "one two\nthree\nfour"},
		{"one\n\ntwo", "one\n\ntwo"},
		{"one\n  as it stands here\ntwo", "one\n  as it stands here\ntwo"},
		{"averylongword that", "averylongword\nthat"},
		{"µµµµ µµµ", "µµµµ µµµ"},
	} {
		if got := Wrap(c.text, 8); got != c.want {
			t.Errorf("Wrap(%q, 8) = %q, want %q", c.text, got, c.want)
		}
	}
}

// Descriptions are beside flags where there is room for them, and below them elsewhere.
func TestFlagUsages(t *testing.T) {
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags.String("device-write-bps", "", "`DEVICE:RATE`, as in Docker's flag of this name")
	flags.BoolP("quiet", "q", false, "print errors only, no other messages")
	flags.Bool("hidden", false, "nobody sees this")
	if err := flags.MarkHidden("hidden"); err != nil {
		t.Fatal(err)
	}
	below := "      --device-write-bps DEVICE:RATE\n          DEVICE:RATE, as in Docker's flag of this\n          name\n" +
		"  -q, --quiet\n          print errors only, no other messages\n"
	if got := flagUsages(flags, 50); got != below {
		t.Errorf("%q, want %q", got, below)
	}
	if got := flagUsages(flags, 80); got != flags.FlagUsagesWrapped(80) || strings.Count(got, "\n") != 2+1 {
		t.Errorf("%q", got)
	}
}
