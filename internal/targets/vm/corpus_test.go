package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// domainsLeast is how many domains there are at least.
const domainsLeast = 20

// TestDomains resolves domains as libvirt and QEMU of many versions leave them on a host.
func TestDomains(t *testing.T) {
	corpus, err := txtar.ParseFile("testdata/domains.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(corpus.Files) / 2; n < domainsLeast {
		t.Errorf("%d domains", n)
	}
	for i := 0; i+1 < len(corpus.Files); i += 2 {
		in, want := corpus.Files[i], corpus.Files[i+1]
		if want.Name != in.Name+".want" {
			t.Fatalf("%s has no answer", in.Name)
		}
		t.Run(in.Name, func(t *testing.T) {
			if got := resolved(t, domainOf(t, string(in.Data))); got != string(want.Data) && (!strings.HasPrefix(string(want.Data), "error ") ||
				!strings.HasPrefix(got, "error ") || !strings.Contains(got, strings.TrimSpace(strings.TrimPrefix(string(want.Data), "error ")))) {
				t.Errorf("got\n%swant\n%s", got, want.Data)
			}
		})
	}
}

func resolved(t *testing.T, k Kind) string {
	t.Helper()
	got, err := k.Resolve(t.Context(), "x")
	if err != nil {
		return fmt.Sprintf("error %v\n", err)
	}
	text := "group " + got.Group.Path() + "\n"
	for _, disk := range got.Disks {
		text += "writes " + disk + "\n"
	}
	for _, disk := range got.ReadDisks {
		text += "reads " + disk + "\n"
	}
	if got.NoDisks != nil {
		text += "no disk\n"
	}
	return text
}

// domainOf makes the host of a domain that is called x.
func domainOf(t *testing.T, text string) Kind {
	t.Helper()
	const pid = 4711
	version, line := cgroupfs.V2, "0::"
	files := map[string]string{"run/libvirt/qemu/x.pid": strconv.Itoa(pid), "proc/4711/fd/0": ""}
	type link struct{ number, name, flags, kind string }
	var links []link
	for n, l := range strings.Split(strings.TrimSpace(text), "\n") {
		word, rest, _ := strings.Cut(l, " ")
		switch word {
		case "version":
			version, line = cgroupfs.V1, "5:blkio:"
		case "group":
			files["proc/4711/cgroup"] = line + rest + "\n"
		case "limits":
			files["sys/fs/cgroup"+rest+"/io.max"] = ""
		default:
			flags, known := map[string]string{"rdonly": "0100000", "wronly": "0101001", "rdwr": "0140002", "character": "0100002", "directory": "0200000"}[word]
			if !known {
				t.Fatalf("line %q", l)
			}
			links = append(links, link{strconv.Itoa(n + 1), rest, flags, word})
		}
	}
	k := host(t, version, files)
	dir := filepath.Join(k.Root, "proc/4711")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "fdinfo"), 0o755))
	for _, l := range links {
		must(os.Symlink(l.name, filepath.Join(dir, "fd", l.number)))
		must(os.WriteFile(filepath.Join(dir, "fdinfo", l.number), []byte("pos:\t0\nflags:\t"+l.flags+"\nmnt_id:\t24\nino:\t7\n"), 0o644))
		if !strings.HasPrefix(l.name, "/") || strings.HasSuffix(l.name, " (deleted)") {
			continue
		}
		file := filepath.Join(k.Root, l.name)
		must(os.MkdirAll(filepath.Dir(file), 0o755))
		switch l.kind {
		case "character":
			must(os.Symlink("/dev/null", file))
		case "directory":
			must(os.MkdirAll(file, 0o755))
		default:
			must(os.WriteFile(file, nil, 0o644))
		}
	}
	return k
}
