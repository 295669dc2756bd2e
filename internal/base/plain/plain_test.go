package plain

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// evil is what a command's argument, a file or a container can be called.
var evil = []string{
	"x\nOnSuccess=evil.service",
	"x\r\nSuccessAction=exit-force",
	"x\u2028TasksMax=1",
	"x\\\n",
	"ends in \\",
	"\x1b[2J\x1b]0;title\x07",
	"\xff\xfe not UTF-8",
	"\u202egnp.exe",
	strings.Repeat("A", 1_500_000),
	strings.Repeat("\n", 1_500_000),
	strings.Repeat("é", 199) + "\n",
}

func TestDescribed(t *testing.T) {
	for _, text := range evil {
		got := Described("weir run " + text)
		if len(got) > 200 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\u2028\x1b\u202e") || strings.HasSuffix(got, `\`) {
			t.Errorf("Described(%.40q) has %d bytes: %q", text, len(got), got)
		}
		if err := Value("the setting Description", got); err != nil {
			t.Errorf("Value refuses what Described makes of %.40q: %v", text, err)
		}
		if err := Value("the place", text); err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x1b") && len(text) < 100 {
			t.Errorf("Value(%.40q) = %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"weir run dd if=/dev/zero of=ö": "weir run dd if=/dev/zero of=ö",
		"a\nb":                          `"a\nb"`,
		`a\`:                            `"a\\"`,
		strings.Repeat("a", 300):        strings.Repeat("a", 195) + "...",
	} {
		if got := Described(text); got != want {
			t.Errorf("Described(%q) = %q, want %q", text, got, want)
		}
	}
	var refused *ValueError
	if err := Value("the place", "/a\nb"); !errors.As(err, &refused) || refused.What != "the place" {
		t.Errorf("Value = %v", err)
	}
	if err := Unit("[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/true\n"); err != nil {
		t.Errorf("Unit = %v", err)
	}
	for _, text := range []string{"[Unit]\nDescription=x\\\nAfter=y\n", "# \xff\n", "a\rb\n", strings.Repeat("# x\n", 1<<19)} {
		if Unit(text) == nil {
			t.Errorf("Unit takes %.60q", text)
		}
	}
	for _, text := range []string{"", "/srv/my data/ö", `a\b`} {
		if err := Value("the place", text); err != nil {
			t.Errorf("Value(%q) = %v", text, err)
		}
	}
}

func TestLineAndText(t *testing.T) {
	for _, c := range []struct{ text, line, lines, quoted string }{
		{"plain ö █", "plain ö █", "plain ö █", "plain ö █"},
		{"a\tb\nc", `a\tb\nc`, "a\tb\nc", `"a\tb\nc"`},
		{"\x1b[2J\r\u202e\xff", `\x1b[2J\r\u202e\xff`, `\x1b[2J\r\u202e\xff`, `"\x1b[2J\r\u202e\xff"`},
		{`a\b "c"`, `a\b "c"`, `a\b "c"`, `a\b "c"`},
	} {
		if got := Line(c.text); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.text, got, c.line)
		}
		if got := Text(c.text); got != c.lines {
			t.Errorf("Text(%q) = %q, want %q", c.text, got, c.lines)
		}
		if got := Quoted(c.text); got != c.quoted {
			t.Errorf("Quoted(%q) = %q, want %q", c.text, got, c.quoted)
		}
	}
}

func TestBrief(t *testing.T) {
	long := "/begin/" + strings.Repeat("é", 40_000) + "/end"
	got := Brief(long)
	if len(got) > briefMost || !strings.HasPrefix(got, "/begin/é") || !strings.HasSuffix(got, "é/end") || !utf8.ValidString(got) {
		t.Errorf("Brief = %d bytes: %q", len(got), got)
	}
	if got := Brief("/srv\n"); got != `/srv\n` {
		t.Errorf("Brief = %q", got)
	}
	if got := Brief(strings.Repeat("\n", 900)); len(got) > briefMost {
		t.Errorf("Brief = %d bytes", len(got))
	}
}

func TestMessage(t *testing.T) {
	twenty := strings.Repeat("line\n", 20)
	if got := Message(twenty); got != twenty {
		t.Errorf("Message = %q", got)
	}
	got := Message(twenty + "x\ny\n")
	if want := strings.Repeat("line\n", 19) + "... and 3 more lines\n"; got != want {
		t.Errorf("Message = %q", got)
	}
	if got := Message("a: " + strings.Repeat("\x1b", 100_000) + " :z\n"); len(got) > 4000 || !strings.HasPrefix(got, `a: \x1b`) || !strings.HasSuffix(got, `\x1b :z`+"\n") {
		t.Errorf("Message = %d bytes: %q", len(got), got)
	}
}

// FuzzPlain: whatever comes in, a description is a value that systemd takes, and a line is one line.
func FuzzPlain(f *testing.F) {
	for _, text := range evil {
		f.Add(text[:min(len(text), 1000)])
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := Value("it", Described(text)); err != nil || len(Described(text)) > 200 {
			t.Errorf("Described(%q) = %q: %v", text, Described(text), err)
		}
		if line := Line(text); has(line, isOdd) || Line(line) != line {
			t.Errorf("Line(%q) = %q", text, line)
		}
		if brief := Brief(text); len(brief) > briefMost || has(brief, isOdd) {
			t.Errorf("Brief(%q) = %q", text, brief)
		}
		if message := Message(text); len(message) > linesMost*(lineMost+1) || strings.Count(message, "\n") > linesMost || strings.ContainsFunc(message, func(r rune) bool { return isOdd(r) && r != '\n' }) {
			t.Errorf("Message(%q) = %q", text, message)
		}
		if short := Short(text, 60); len(short) > 60 || has(short, isOdd) {
			t.Errorf("Short(%q) = %q", text, short)
		}
	})
}
