package blkdev

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/base/plain"
)

// escape writes a string as the kernel's seq_escape does for mount options.
func escape(s string) string {
	return strings.NewReplacer(",", `\054`, "=", `\075`, " ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(s)
}

func FuzzOverlay(f *testing.F) {
	f.Add("/up", "/l1", "/l:2")
	f.Add("/a,b", `/c\d`, "/e=f")
	f.Fuzz(func(t *testing.T, upper, lower1, lower2 string) {
		parseOverlay(upper) // anything at all: must not panic
		if lower1 == "" || lower2 == "" || upper == "" {
			return
		}
		colons := strings.NewReplacer(`\`, `\\`, ":", `\:`)
		opts := "rw,lowerdir=" + escape(colons.Replace(lower1)+":"+colons.Replace(lower2)) + ",upperdir=" + escape(upper) + ",workdir=/w"
		d := parseOverlay(opts)
		if d.upper != upper || !slices.Equal(d.lower, []string{lower1, lower2}) {
			t.Errorf("parseOverlay(%q) = %+v, want upper %q, lower %q %q", opts, d, upper, lower1, lower2)
		}
	})
}

func FuzzMounts(f *testing.F) {
	f.Add(rootOnVda2, "/srv/x")
	f.Add("20 1 0:5 / / rw - btrfs /dev/sda rw\n21 20 0:6 / /a rw - tmpfs t rw\n22 21 0:7 / /a rw shared:1 - tmpfs t rw", "/a/b")
	f.Add("1 1 1:1 / / rw - a b c\n2 2 1:1 / / rw - a b c", "/")
	f.Fuzz(func(t *testing.T, content, path string) {
		mounts, _, err := parseMounts(strings.NewReader(content), all)
		if err != nil {
			return
		}
		if m, ok := covering(mounts, path); ok && !within(path, m.Point) && m.Point != "/" {
			t.Errorf("%q is on the mount %q", path, m.Point)
		}
		for _, m := range mounts {
			withoutDevice(m)
			parseOverlay(m.SuperOptions)
			_ = m.text()
		}
	})
}

// FuzzResolve gives any name to a root: it must name a device that is there, or fail
// with an error that has the name.
func FuzzResolve(f *testing.F) {
	for _, tc := range deviceCases {
		f.Add(tc.spec)
	}
	for _, s := range []string{"", ".", "..", "/", "//", "mapper/", "dev/", "../../etc/passwd", "/dev/../sys", "8:", "UUID=", "a\x00b", "/dev/vda/"} {
		f.Add(s)
	}
	tr := newTree(f)
	loopOnVda2(tr)
	f.Fuzz(func(t *testing.T, spec string) {
		c, err := tr.fs().Resolve(t.Context(), spec)
		if err != nil {
			var spelling *SpellingError
			if !errors.As(err, &spelling) && !strings.Contains(err.Error(), plain.Line(spec)) {
				t.Errorf("the error of %q does not name it: %v", spec, err)
			}
			return
		}
		if len(c.Devices) == 0 || c.Devices[0].Name == "" || c.Devices[0].Number == (Number{}) {
			t.Errorf("Resolve(%q) = %s without a device", spec, c)
		}
	})
}

func FuzzNumber(f *testing.F) {
	f.Add("8:0")
	f.Add("+1:-1")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseNumber(s)
		if err != nil {
			return
		}
		if again, err := ParseNumber(n.String()); err != nil || again != n {
			t.Errorf("%q reads as %v, which reads as %v (%v)", s, n, again, err)
		}
	})
}
