package limiting

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	containerID    = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"
	containerGroup = "sys/fs/cgroup/blkio/docker/" + containerID
)

// containerHost is a v1 host with a container that Docker's cgroupfs driver has made.
func containerHost(t *testing.T) Manager {
	t.Helper()
	files := map[string]string{
		"proc/4900/cgroup":               "4:memory:/docker/" + containerID + "\n3:blkio:/docker/" + containerID + "\n",
		"proc/4900/mountinfo":            "440 430 254:16 /volumes/db/_data /db rw,relatime - xfs /dev/vdb rw,inode64\n",
		containerGroup + "/cgroup.procs": "4900\n",
	}
	for _, name := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
		files[containerGroup+"/blkio.throttle."+name+"_device"] = ""
	}
	return manager(t, "v1", files, host.Options{})
}

// A docker answers at the usual socket of a copy of a host.
type docker struct {
	status string // of the one container; empty: there is none
	newer  bool   // it takes limits to keep
	told   []string
}

func (d *docker) serve(t *testing.T, root string) {
	t.Helper()
	socket := sockettest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if d.newer {
			w.Header().Set("Api-Version", "1.55")
		}
		switch {
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			d.told = append(d.told, string(body))
			_, _ = io.WriteString(w, `{"Warnings":null}`)
		case d.status == "":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"No such container"}`)
		default:
			pid := "0"
			if d.status == "running" {
				pid = "4900"
			}
			_, _ = io.WriteString(w, `{"Id":"`+containerID+`","State":{"Status":"`+d.status+`","Pid":`+pid+`},"HostConfig":{}}`)
		}
	})
	dir := filepath.Join(root, "var/run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(socket, filepath.Join(dir, "docker.sock")); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, c Change, err error) Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A limit is set and saved, restored after a restart, waited for while the container is stopped,
// kept while Docker does not know the container, and cleared.
func TestTheLifeOfAContainer(t *testing.T) {
	m := containerHost(t)
	d := &docker{status: "running"}
	d.serve(t, m.Host.Root)
	kernel := hosttest.Rehearse(t, m.Host)
	limited := func() string {
		text, err := os.ReadFile(filepath.Join(m.Host.Root, containerGroup, "blkio.throttle.write_bps_device"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	change, err := m.PrepareSet(t.Context(), Request{Target: "docker:web", Asked: []limit.Asked{{Limit: wbps(5e6)}}, Persist: true})
	r := do(t, change, err)
	if limited() != "254:16 5000000\n" || len(r.Decided.Places) != 1 || !slices.ContainsFunc(remedies(r), func(do fault.Do) bool { return do == fault.RestoreBoot }) {
		t.Errorf("%q, %+v", limited(), r)
	}
	record := filepath.Join(m.Host.Root, keep.SavedPath("docker:"+containerID))
	if text, err := os.ReadFile(record); err != nil || !strings.Contains(string(text), `"wbps":5000000`) {
		t.Errorf("%s, %v", text, err)
	}
	shown, err := m.Show(t.Context(), "docker:web", 0)
	if err != nil || shown.Groups[0].Target != "docker:web" || len(shown.Groups[0].Kept) != 1 || shown.Groups[0].Owner.Kind != "docker" {
		t.Errorf("%+v, %v", shown, err)
	}
	if err := os.WriteFile(filepath.Join(m.Host.Root, containerGroup, "blkio.throttle.write_bps_device"), nil, 0o644); err != nil {
		t.Fatal(err) // as after a restart
	}
	for _, c := range []struct {
		status string
		want   State
		writes int
	}{{"exited", Stopped, 0}, {"", Unknown, 0}, {"running", Restored, 1}} {
		d.status, kernel.Writes = c.status, nil
		all, err := m.Restore(t.Context(), Restore{})
		if err != nil || len(all) != 1 || all[0].State != c.want || all[0].Err != nil || len(kernel.Writes) != c.writes {
			t.Errorf("%q: %+v, %v, wrote %v", c.status, all, err, kernel.Writes)
		}
	}
	if limited() != "254:16 5000000\n" {
		t.Errorf("it is not restored: %q", limited())
	}
	change, err = m.PrepareClear(t.Context(), "pid:4900", nil, false) // a process of the container stands for it
	if r = do(t, change, err); limited() != "" || len(r.Cleared) != 1 || len(r.Notes) != 2 {
		t.Errorf("%q, %+v", limited(), r)
	}
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("the record is there: %v", err)
	}
	if _, err := m.Restore(t.Context(), Restore{Targets: []string{"docker:web"}}); err == nil {
		t.Error("what was cleared is restored")
	}
}

func remedies(r Result) (all []fault.Do) {
	for _, n := range r.Notes {
		all = append(all, n.Remedy.Do)
	}
	return all
}

// A newer Docker keeps the limit itself: it is told before the rule is written, and what it was
// told is taken back if the kernel refuses the rule.
func TestANewerDocker(t *testing.T) {
	m := containerHost(t)
	d := &docker{status: "running", newer: true}
	d.serve(t, m.Host.Root)
	kernel := hosttest.Rehearse(t, m.Host)
	request := Request{Target: "docker:web", Asked: []limit.Asked{{Limit: wbps(5e6)}}, Persist: true}
	kernel.Refuse = func(file, line string) error {
		if len(d.told) == 0 {
			t.Errorf("%s is written before Docker knows", file)
		}
		return os.ErrPermission
	}
	change, err := m.PrepareSet(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	const after, before = `{"BlkioDeviceWriteBps":[{"Path":"/dev/vdb","Rate":5000000}]}`, `{"BlkioDeviceWriteBps":[]}`
	if _, err := change.Apply(t.Context()); err == nil || !slices.Equal(d.told, []string{after, before}) {
		t.Errorf("%v, told %q", err, d.told)
	}
	kernel.Refuse, d.told = nil, nil
	change, err = m.PrepareSet(t.Context(), request)
	r := do(t, change, err)
	if !slices.Equal(d.told, []string{after}) || len(kernel.Writes) != 1 || !slices.Equal(remedies(r), []fault.Do{fault.Clear}) {
		t.Errorf("told %q, wrote %v, %+v", d.told, kernel.Writes, r)
	}
	if _, err := os.Stat(filepath.Join(m.Host.Root, keep.SavedDir)); !os.IsNotExist(err) {
		t.Errorf("weir saves it too: %v", err)
	}
	// Docker starts no pacer. Where one is asked for, weir's record keeps the limit.
	request.Hold, d.told = limit.HoldAuto, nil
	change, err = m.PrepareSet(t.Context(), request)
	if do(t, change, err); d.told != nil {
		t.Errorf("told %q", d.told)
	}
	if _, err := os.Stat(filepath.Join(m.Host.Root, keep.SavedPath("docker:"+containerID))); err != nil {
		t.Error(err)
	}
}

// On another version of cgroups nothing of a v1 host's container is found.
func TestAContainerWithoutAHierarchy(t *testing.T) {
	m := containerHost(t)
	other, err := host.Open(host.Options{Root: m.Host.Root, Version: cgroupfs.V2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for _, err := range []error{
		second(Manager{other}.PrepareSet(t.Context(), Request{Target: "docker:web", Asked: onData(wbps(1))})),
		second(Manager{other}.PrepareClear(t.Context(), "docker:web", nil, false)),
		second(Manager{other}.Restore(t.Context(), Restore{})),
	} {
		if !fault.IsUnsupported(err) {
			t.Errorf("%v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
