package limiting

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/targets"
)

// spelled are steps of files and commands, one a line.
func spelled(p Preview) (lines []string) {
	for _, s := range p.Steps {
		lines = append(lines, strings.TrimSpace(s.File+" "+s.Line+s.Command))
	}
	return lines
}

// logged notes what a copy's kernel gets.
func logged(t *testing.T, m Manager, log *[]string) {
	t.Helper()
	hosttest.Rehearse(t, m.Host).Refuse = func(file, line string) error {
		*log = append(*log, file+" "+line)
		return nil
	}
}

// What a dry run shows of a newer Docker, which keeps limits itself, is what it is told, before
// the rules are written.
func TestADryRunTellsDocker(t *testing.T) {
	m := containerHost(t)
	var log []string
	stored, socket := "{}", filepath.Join(m.Host.Root, "var/run/docker.sock")
	at := sockettest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.55")
		if r.Method != http.MethodPost {
			_, _ = io.WriteString(w, `{"Id":"`+containerID+`","State":{"Status":"running","Pid":4900},"HostConfig":`+stored+`}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		stored = string(body)
		log = append(log, cmdline.Line([]string{"curl", "--unix-socket", socket, "--json", stored, "http://docker" + r.URL.Path}))
		_, _ = io.WriteString(w, `{"Warnings":null}`)
	})
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at, socket); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		prepare func() (Change, error)
		lines   int
	}{
		{"set", func() (Change, error) {
			return m.PrepareSet(t.Context(), Request{Target: "docker:web", Asked: []limit.Asked{{Limit: wbps(5e6).With(limit.RIOPS, limit.PerSecond(7))}}, Persist: true})
		}, 3},
		{"set another", func() (Change, error) {
			return m.PrepareSet(t.Context(), Request{Target: "docker:web", Asked: onDB(wbps(6e6)), Persist: true})
		}, 2},
		{"clear", func() (Change, error) { return m.PrepareClear(t.Context(), "docker:web", nil, false) }, 3},
	} {
		change, err := c.prepare()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		preview, err := change.Steps(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if log != nil {
			t.Errorf("%s: a dry run did %q", c.name, log)
		}
		logged(t, m, &log)
		if change, err = c.prepare(); err != nil { // its groups are of before
			t.Fatalf("%s: %v", c.name, err)
		}
		do(t, change, nil)
		if shown := spelled(preview); !slices.Equal(log, shown) || len(log) != c.lines || !strings.HasPrefix(log[0], "curl ") {
			t.Errorf("%s: did\n%q\nshown\n%q", c.name, log, shown)
		}
		log = nil
	}
}

// onDB asks for a limit on the disk of the container's volume.
func onDB(l limit.Limit) []limit.Asked { return []limit.Asked{{On: "vdb", Limit: l}} }

// What it shows of libvirt is the command that is run, after the rules are written.
func TestADryRunTellsLibvirt(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho virsh \"$@\" >>" + calls + "\necho 'device_write_bytes_sec: /dev/vdb,2000'\n"
	if err := os.WriteFile(filepath.Join(dir, "virsh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	m := manager(t, "v1", map[string]string{"run/libvirt/qemu/db.pid": "4711\n"}, host.Options{})
	prepare := func() *setting {
		s := &setting{m: m, request: Request{Asked: onData(wbps(5e6)), Persist: true}}
		its := targets.Target{Kind: "vm", Name: "db", Group: hosttest.Group(t, m.Host, "/batch"), Owner: targets.Owner{Kind: "libvirt", Name: "db"}}
		if err := s.prepare(t.Context(), its); err != nil {
			t.Fatal(err)
		}
		return s
	}
	preview, err := prepare().Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes := func() (lines []string) {
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, " --device-") { // others only ask
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	if did := changes(); did != nil {
		t.Errorf("a dry run did %q", did)
	}
	var log []string
	logged(t, m, &log)
	do(t, prepare(), nil)
	if did, shown := append(log, changes()...), spelled(preview); !slices.Equal(did, shown) || len(did) != 2 {
		t.Errorf("did\n%q\nshown\n%q", did, shown)
	}
}
