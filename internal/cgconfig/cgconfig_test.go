package cgconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-io/weir/lab"
)

// read spells what a file gives, a line each.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	sections, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	limits, notes := Limits(File{Sections: sections})
	var b strings.Builder
	for _, l := range limits {
		fmt.Fprintf(&b, "%s (%d) %s: %s\n", l.Group, l.Line, l.Device, l.Limit)
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "%d: %s\n", n.Line, n.Text)
	}
	return b.String()
}

// A section that libcgroup has not is left out with its limits, so it must be said.
func TestUnknownSections(t *testing.T) {
	lab.Unit(t)
	for _, word := range []string{"Group", "\ufeffgroup", "cgroup"} {
		f, err := Parse(word + ` a { blkio { blkio.throttle.write_bps_device = "8:0 5"; } }`)
		if err != nil {
			t.Errorf("%q: %v", word, err)
			continue
		}
		limits, notes := Limits(File{Name: "x", Sections: f})
		if len(limits) != 0 || len(notes) != 1 || !strings.Contains(notes[0].Text, "libcgroup has no such section") {
			t.Errorf("%q: %v, %v", word, limits, notes)
		}
	}
}

func TestLimits(t *testing.T) {
	lab.Unit(t)
	for file, want := range map[string]string{
		"libvirt.conf": `/libvirt/qemu/test1 (7) 253:3: read 20 MiB/s, write 20 MiB/s
2: mount: left out: weir uses the hierarchies that are mounted
8: group libvirt/qemu/test1: perm: left out: weir sets no permissions
12: group libvirt/qemu/test1: cpu: left out: no disk I/O
16: group libvirt/qemu/test1: blkio.weight: left out: of disk I/O, weir sets only limits
`,
		"mixed.conf": `/ (2) 8:0: write max
/daemons/www (3) 8:0: read 1 MiB/s, read 999 ops/s
/daemons/www (3) 8:16: read 2 MiB/s
/daemons/ftp (15) 8:16: read 2 MiB/s, write max
1: default: left out: it is about libcgroup itself
5: group daemons/www: name=systemd: left out: no disk I/O
11: group daemons/www: blkio.throttle.write_bps_device: left out: "5242880" is not MAJOR:MINOR and a rate
12: group daemons/www: blkio.throttle.write_iops_device: left out: 4294967296 is more than the kernel can store
16: group daemons/ftp/: io.weight: left out: of disk I/O, weir sets only limits
17: group daemons/ftp/: io.max: left out: "latency=5" is none of rbps=, wbps=, riops= and wiops=
18: group daemons/ftp/: io.max: left out: "8:16" names no rate
20: group "../../etc": left out: this is no valid group name
21: template students/%u: left out: its groups exist only once processes of its users start
`,
	} {
		if got := read(t, file); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
		}
	}
}

func TestSyntaxErrorsSayWhere(t *testing.T) {
	lab.Unit(t)
	for text, want := range map[string]string{
		"group a {\n  blkio {\n":                   `line 3: found the end of the file; a name or } is expected in section blkio of line 2`,
		"group a b {}":                             `line 1: found "b"; { is expected after group`,
		"group a {\n x y\n}":                       `line 2: found "y"; = or { is expected after x`,
		"\n\ngroup a { blkio { x = 8:0 1048576;}}": `line 3: found "1048576"; a semicolon is expected after the value of x (a value with spaces needs quotation marks)`,
		"group a { blkio { x = \"8:0\n1; } }":      `line 2: a quotation mark is not closed`,
		"}":                                        `line 1: found "}"; a section is expected here, such as group NAME {`,
		"group a { x = ; }":                        `line 1: found ";"; the value of x is expected here`,
		"group a {}* x y":                          `line 1: found "y"; { is expected after *`, // libcgroup's comments begin a line
		"group a {\n}* x y":                        `line 2: found "y"; { is expected after *`,
		"group a {} * x y":                         `line 1: found "y"; { is expected after *`,
		"group a {\n * x\n}":                       `line 2: found "x"; = or { is expected after *`,
		"a " + strings.Repeat("{a", 20):            `line 1: sections are nested more than 8 deep`,
	} {
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("Parse(%q): %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "group a {}", "* a comment\n# one\n*another {\ngroup a {\n* it = x;\n}\n*", "group a { cpu {} }", "group a{x{y=z}}", "group a {} # one\n* two {\n", "group a { # one\n* two {\n}"} {
		if _, err := Parse(text); err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}

// Whatever a file holds, no group leaves the hierarchy, and lines are the file's.
func FuzzParse(f *testing.F) {
	lab.Unit(f)
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) == 0 {
		f.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("group \"\" { io { io.max = \"\n\"; } } }")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		sections, err := Parse(text)
		var syntax *SyntaxError
		if errors.As(err, &syntax) && syntax.Line > lines {
			t.Errorf("an error in line %d of %d", syntax.Line, lines)
		}
		limits, notes := Limits(File{Sections: sections})
		for _, l := range limits {
			if !strings.HasPrefix(l.Group, "/") || strings.Contains(l.Group+"/", "/../") || strings.ContainsFunc(l.Group, unicode.IsControl) || l.Limit.IsZero() || l.Line > lines {
				t.Errorf("%+v", l)
			}
		}
		for _, n := range notes {
			if n.Line < 1 || n.Line > lines || n.Text == "" || strings.ContainsFunc(n.Text, unicode.IsControl) {
				t.Errorf("note %+v of %d lines", n, lines)
			}
		}
	})
}

// Sections that move groups do so for all of a file, and systemd's for the files after it.
func TestGroupsThatAreMoved(t *testing.T) {
	lab.Unit(t)
	const limits = `{ blkio { blkio.throttle.read_bps_device = "8:0 1000"; } }`
	parse := func(name, text string) File {
		t.Helper()
		sections, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return File{name, sections}
	}
	main := parse("main", "group web "+limits+"\nsystemd { slice = s.slice; scope = c.scope; setdefault = yes; }\n")
	for name, c := range map[string]struct {
		files []File
		want  string
	}{
		"systemd":              {[]File{main}, "/s.slice/c.scope/web"},
		"systemd, in order":    {[]File{main, parse("d/a", "namespace { cpu = x; blkio = daemons/io; }\ngroup db "+limits), parse("d/b", "group . "+limits)}, "/s.slice/c.scope/web /s.slice/c.scope/daemons/io/db /s.slice/c.scope"},
		"no default":           {[]File{parse("x", "systemd { slice = s.slice; scope = c.scope; setdefault = no; }\ngroup web "+limits)}, "/web"},
		"names that are none":  {[]File{parse("x", "systemd { slice = \"..\"; scope = \"a/b\"; setdefault = yes; }\nnamespace { blkio = \"../x\"; }\ngroup web "+limits)}, "/web"},
		"the same group twice": {[]File{parse("x", "group web "+limits), parse("y", `group web { blkio { blkio.throttle.read_bps_device = "8:0 2000"; } }`)}, "/web"},
	} {
		all, notes := Limits(c.files...)
		var groups []string
		for _, l := range all {
			groups = append(groups, l.Group)
		}
		if got := strings.Join(groups, " "); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, c.want, notes)
		}
		if name == "the same group twice" && all[0].Limit.String() != "read 2 kB/s" {
			t.Errorf("%s: %s", name, all[0].Limit)
		}
	}
}
