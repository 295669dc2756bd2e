package mountinfo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	upstream "github.com/moby/sys/mountinfo"
)

const root = "20 1 254:2 / / rw,relatime shared:1 - ext4 /dev/vda2 rw,errors=remount-ro"

func read(t *testing.T, text string) ([]Info, Left) {
	t.Helper()
	var all []Info
	left, err := Read(strings.NewReader(text), func(i Info) bool { all = append(all, i); return false })
	if err != nil {
		t.Fatal(err)
	}
	return all, left
}

func TestRead(t *testing.T) {
	deep := strings.Repeat("/"+strings.Repeat("d", 250), 280)
	layers := strings.Repeat(`,lowerdir+=/var/lib/containers/storage/overlay/`+strings.Repeat("0", 200), 400)
	for name, c := range map[string]struct {
		line string
		want Info
	}{
		"no optional field": {"21 20 0:5 / /dev ro - devtmpfs udev rw", Info{ID: 21, Parent: 20, Minor: 5, Root: "/", Point: "/dev", Options: "ro", FSType: "devtmpfs", Source: "udev", SuperOptions: "rw"}},
		"escapes": {`22 20 8:16 /a\134b /mnt/my\040data\011x rw shared:2 master:1 - fuse.x\040y a\040b rw`,
			Info{ID: 22, Parent: 20, Major: 8, Minor: 16, Root: `/a\b`, Point: "/mnt/my data\tx", Options: "rw", Optional: "shared:2 master:1", FSType: "fuse.x y", Source: "a b", SuperOptions: "rw"}},
		"a point of 70 kB": {"23 20 0:60 / " + deep + " rw - fuse.x x rw", Info{ID: 23, Parent: 20, Minor: 60, Root: "/", Point: deep, Options: "rw", FSType: "fuse.x", Source: "x", SuperOptions: "rw"}},
		"400 layers": {"24 20 0:61 / /m rw - overlay o rw" + layers + ",upperdir=/up", Info{ID: 24, Parent: 20, Minor: 61, Root: "/", Point: "/m", Options: "rw",
			FSType: "overlay", Source: "o", SuperOptions: "rw" + layers + ",upperdir=/up"}},
		"options with a space and a dash": {"25 20 0:62 / /m rw - overlay overlay rw,lowerdir=/my - data,upperdir=/up", Info{ID: 25, Parent: 20, Minor: 62, Root: "/", Point: "/m", Options: "rw",
			FSType: "overlay", Source: "overlay", SuperOptions: "rw,lowerdir=/my - data,upperdir=/up"}},
		"an empty source":                        {"26 20 0:63 / /m rw -  tmpfs  rw", Info{}},
		"no source at all":                       {"27 20 0:64 / /m rw - tmpfs  rw", Info{ID: 27, Parent: 20, Minor: 64, Root: "/", Point: "/m", Options: "rw", FSType: "tmpfs", SuperOptions: "rw"}},
		"a namespace":                            {"28 20 0:4 net:[4026532001] /run/netns/a rw - nsfs nsfs rw", Info{ID: 28, Parent: 20, Minor: 4, Root: "net:[4026532001]", Point: "/run/netns/a", Options: "rw", FSType: "nsfs", Source: "nsfs", SuperOptions: "rw"}},
		"the rest of a source with a line break": {"rw,upperdir=/x rw", Info{}},
		"no number":                              {"x 20 0:4 / /a rw - nsfs nsfs rw", Info{}},
		"no device":                              {"28 20 04 / /a rw - nsfs nsfs rw", Info{}},
		"a huge device":                          {"28 20 4294967296:0 / /a rw - nsfs nsfs rw", Info{}},
		"no separator":                           {"28 20 0:4 / /a rw shared:1 nsfs nsfs rw", Info{}},
		"an empty line":                          {"", Info{}},
		"longer than 16 MiB":                     {"29 20 0:4 / /" + strings.Repeat("x", lineMost) + " rw - nsfs nsfs rw", Info{}},
	} {
		t.Run(name, func(t *testing.T) {
			all, left := read(t, root+"\n"+c.line+"\n"+strings.Replace(root, "20 1", "99 1", 1)+"\n")
			if all[0].ID != 20 || all[len(all)-1].ID != 99 {
				t.Errorf("the lines around are lost: %d lines", len(all))
			}
			if c.want == (Info{}) {
				if left.Lines != 1 || left.First != 2 || left.Why == "" || len(left.String()) > 200 || len(all) != 2 {
					t.Errorf("%d lines, left %+v", len(all), left)
				}
				return
			}
			if left != (Left{}) || len(all) != 3 || all[1] != c.want {
				t.Errorf("got %.300s, left %v", fmt.Sprintf("%+v", all[1:]), left)
			}
		})
	}
}

// The last line need not be whole, and each may stop.
func TestReadEnds(t *testing.T) {
	if all, left := read(t, root); len(all) != 1 || left.Lines != 0 || all[0].SuperOptions != "rw,errors=remount-ro" {
		t.Errorf("%+v, %v", all, left)
	}
	if all, left := read(t, ""); len(all) != 0 || left.Lines != 0 {
		t.Errorf("%+v, %v", all, left)
	}
	n := 0
	if _, err := Read(strings.NewReader(root+"\n"+root), func(Info) bool { n++; return true }); err != nil || n != 1 {
		t.Errorf("%d lines after stop, %v", n, err)
	}
	if _, err := Read(io.MultiReader(strings.NewReader(root+"\n"), broken{}), func(Info) bool { return false }); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read that fails: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// What another reader of that file understands, this one understands in the same way.
func FuzzAsUpstream(f *testing.F) {
	f.Add(root)
	f.Add(`22 20 8:16 /a\134b /mnt/my\040data rw shared:2 master:1 - fuse.x a\040b rw`)
	f.Add("27 20 0:64 / /m rw - tmpfs  rw")
	if own, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		for line := range bytes.Lines(own) {
			f.Add(strings.TrimSuffix(string(line), "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r") || strings.Count(line, " - ") != 1 || strings.Contains(line, " - - ") || strings.Contains(line, `\2`) || strings.Contains(line, `\3`) {
			return // two readings of a separator are right; of escapes theirs knows ASCII alone
		}
		theirs, err := upstream.GetMountsFromReader(strings.NewReader(line+"\n"), nil)
		if err != nil || len(theirs) != 1 {
			return
		}
		ours, left := read(t, line+"\n")
		if left.Lines > 0 {
			return // they take what is no number as 0
		}
		o, u := ours[0], theirs[0]
		tail := line[strings.Index(line, " - ")+len(" - "):]
		if strings.Count(tail, " ") > 2 {
			u.VFSOptions, o.SuperOptions = "", "" // after a space in the options they lose the rest
		}
		got := upstream.Info{ID: o.ID, Parent: o.Parent, Major: int(o.Major), Minor: int(o.Minor), Root: o.Root, Mountpoint: o.Point,
			Options: o.Options, Optional: o.Optional, FSType: o.FSType, Source: o.Source, VFSOptions: o.SuperOptions}
		if got != *u {
			t.Errorf("%q\n got %+v\nwant %+v", line, got, *u)
		}
	})
}

// Every line that this kernel prints is read, and as others read it.
func TestAsUpstream(t *testing.T) {
	own, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := upstream.GetMountsFromReader(bytes.NewReader(own), nil)
	if err != nil {
		t.Logf("the other reader cannot read what this host has (%v); the corpus is compared with it", err)
	}
	ours, left := read(t, string(own))
	if theirs == nil {
		if left.Lines > 0 {
			t.Errorf("%d lines are not read: %v", left.Lines, left)
		}
		return
	}
	if left.Lines > 0 || len(ours) != len(theirs) {
		t.Fatalf("%d lines, theirs %d, %v", len(ours), len(theirs), left)
	}
	for n, o := range ours {
		if u := theirs[n]; o.ID != u.ID || o.Point != u.Mountpoint || o.FSType != u.FSType || o.Source != u.Source || o.SuperOptions != u.VFSOptions {
			t.Errorf("got %+v, want %+v", o, *u)
		}
	}
}

// FuzzRead: nothing that a line holds hides the next one.
func FuzzRead(f *testing.F) {
	f.Add("rw,upperdir=/x rw")
	f.Fuzz(func(t *testing.T, line string) {
		all, _ := read(t, line+"\n"+root+"\n")
		if len(all) == 0 || all[len(all)-1].ID != 20 {
			t.Errorf("%q hides the next line", line)
		}
	})
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{`a\040b`, `\134`, `\`, `\04`, `\777`, `\400`, "ü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(s)
		if got := Unescape(escaped); got != s {
			t.Errorf("Unescape(%q) = %q", escaped, got)
		}
		if got := Unescape(s); len(got) > len(s) {
			t.Errorf("Unescape(%q) = %q grew", s, got)
		}
	})
}
