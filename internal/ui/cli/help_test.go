package cli

import "testing"

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
