package keep

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// docker answers updates of a container at a socket, and notes them.
func docker(t *testing.T, files map[string]string) (h *host.Host, told func() string) {
	t.Helper()
	var said strings.Builder
	socket := sockettest.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said.WriteString(string(body))
	})
	h = hosttest.Open(t, "v1", files, host.Options{Sockets: map[string]string{"docker": "unix://" + socket}})
	return h, said.String
}

// An engine is told before the rules are written, and what it is told can be taken back.
func TestEngine(t *testing.T) {
	h, told := docker(t, map[string]string{dropin.Path("docker-" + id + ".scope"): savedText(t, limit.Asked{On: "/dev/vda", Limit: writes(1)})})
	k := Of(h, updating(container(group(t, h), "")), cgroupfs.V1)
	plan, edit := keepIn(t, k, wanted(writes(10), ""))
	if plan.File != nil || plan.Persist || len(edit.Before) != 1 || len(edit.After) != 1 {
		t.Fatalf("%+v, %+v", plan, edit)
	}
	const after, before = `{"BlkioDeviceWriteBps":[{"Path":"/dev/vda","Rate":5},{"Path":"/dev/vdb","Rate":10}]}`, `{"BlkioDeviceWriteBps":[{"Path":"/dev/vda","Rate":5}]}`
	steps, err := StepsOf(t.Context(), edit.Before)
	if err != nil || len(steps) != 1 || !strings.HasPrefix(steps[0].Command, "curl --unix-socket /") || !strings.HasSuffix(steps[0].Command, "--json '"+after+"' http://docker/v1.55/containers/"+id+"/update") {
		t.Errorf("%+v, %v", steps, err)
	}
	// Without the right to write the rules, nothing is told.
	if _, err := DoAll(t.Context(), edit.Before); !fault.IsUnsupported(err) || told() != "" {
		t.Errorf("%v, told %q", err, told())
	}
	tell := edit.Before[0].(tellEngine)
	tell.io = nil
	done, err := tell.Do(t.Context())
	if err != nil || told() != after {
		t.Fatalf("%v, told %s", err, told())
	}
	if err := done.Undo(); err != nil || told() != after+before {
		t.Errorf("%v, told %s", err, told())
	}
	if notes := k.Lasts(plan, true); len(notes) != 1 || notes[0].Text != "Docker keeps the limit for each start of docker:web" || notes[0].Remedy.Do != fault.Clear {
		t.Errorf("%+v", notes)
	}
	if _, edit := keepIn(t, k, Wanted{Places: []place.Expected{{Placed: place.Placed{Device: vda, Limit: writes(5)}}}}); edit.Before != nil {
		t.Errorf("it keeps that already: %+v", edit)
	}
}

func TestEngineForgets(t *testing.T) {
	h, told := docker(t, nil)
	k := Of(h, updating(container(group(t, h), "")), cgroupfs.V1)
	if _, edit := forgetIn(t, k, vdb.Number); edit.Before != nil {
		t.Errorf("on a device without a limit: %+v", edit)
	}
	_, edit := forgetIn(t, k, vda.Number)
	notes, err := DoAll(t.Context(), edit.Before)
	if err != nil || told() != `{"BlkioDeviceWriteBps":[]}` || len(notes) != 1 || notes[0].Text != "Docker no longer keeps a limit for it" {
		t.Errorf("%+v, %v, told %s", notes, err, told())
	}
	strange := updating(container(group(t, h), ""))
	strange.Lasting = "rkt:x"
	_, edit = forgetIn(t, Of(h, strange, cgroupfs.V1))
	if _, err := DoAll(t.Context(), edit.Before); err == nil {
		t.Error("an engine that nobody knows is told")
	}
}

// domain is a copy of a host with a running domain, and a virsh that answers with a text and
// notes its arguments. Without a text it fails.
func domain(t *testing.T, answer string) (h *host.Host, its targets.Target, calls func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$@\" >>" + log + "\n" + answer + "\n"
	if err := os.WriteFile(filepath.Join(dir, "virsh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	h = open(t, "v1", map[string]string{"run/libvirt/qemu/db.pid": "4711\n"})
	its = targets.Target{Kind: "vm", Name: "db", Group: group(t, h), Owner: targets.Owner{Kind: "libvirt", Name: "db"}}
	return h, its, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			return ""
		}
		return string(text)
	}
}

const tuned = `echo "device_read_bytes_sec: /dev/vda,1000"
echo "device_write_bytes_sec: /dev/vdb,2000"`

func TestLibvirt(t *testing.T) {
	h, its, calls := domain(t, tuned)
	k := Of(h, its, cgroupfs.V1)
	if err := k.May(t.Context()); err != nil || k.By() != "libvirt" {
		t.Fatal(k.By(), err)
	}
	plan, edit := keepIn(t, k, wanted(writes(5), ""))
	if plan.File != nil || edit.Before != nil {
		t.Errorf("%+v, %+v", plan, edit)
	}
	steps, err := StepsOf(t.Context(), edit.After)
	const keep = "virsh --quiet --connect qemu:///system blkiotune --config --domain=db --device-write-bytes-sec=/dev/vdb,5"
	if err != nil || len(steps) != 1 || steps[0].Command != keep {
		t.Errorf("%+v, %v", steps, err)
	}
	if _, err := DoAll(t.Context(), edit.After); err != nil || !strings.Contains("virsh "+calls(), strings.TrimPrefix(keep, "virsh ")) {
		t.Errorf("%v, called with %s", err, calls())
	}
	if notes := k.Lasts(plan, true); len(notes) != 1 || notes[0].Remedy.Do != fault.Clear {
		t.Errorf("%+v", notes)
	}
	if notes := k.Lasts(plan, false); len(notes) != 1 || notes[0].Level != note.Warning {
		t.Errorf("%+v", notes)
	}
}

func TestLibvirtForgets(t *testing.T) {
	h, its, calls := domain(t, tuned)
	k := Of(h, its, cgroupfs.V1)
	_, edit := forgetIn(t, k, vdb.Number)
	if steps, err := StepsOf(t.Context(), edit.After); steps != nil || err != nil {
		t.Errorf("a copy's libvirt cannot be asked: %+v, %v", steps, err)
	}
	notes, err := DoAll(t.Context(), edit.After)
	if err != nil || len(notes) != 1 || !strings.HasSuffix(calls(), " --device-write-bytes-sec=/dev/vdb,0\n") {
		t.Errorf("%+v, %v, called with %s", notes, err, calls())
	}
	_, edit = forgetIn(t, k)
	if _, err := DoAll(t.Context(), edit.After); err != nil || !strings.HasSuffix(calls(), " --device-read-bytes-sec=/dev/vda,0 --device-write-bytes-sec=/dev/vdb,0\n") {
		t.Errorf("%v, called with %s", err, calls())
	}
}

// A domain without a configuration keeps nothing, and nothing is forgotten.
func TestATransientDomain(t *testing.T) {
	h, its, _ := domain(t, "echo 'error: transient domains do not have any persistent config' >&2; exit 1")
	k := Of(h, its, cgroupfs.V1)
	if err := k.May(t.Context()); err == nil {
		t.Error("libvirt keeps limits of a domain that it makes anew")
	}
	_, edit := forgetIn(t, k)
	if notes, err := DoAll(t.Context(), edit.After); err != nil || notes != nil {
		t.Errorf("%+v, %v", notes, err)
	}
}

func TestOfStopped(t *testing.T) {
	const other = "0000000000000000000000000000000000000000000000000000000000000000"
	record := func(name, called string) map[string]string {
		r := Saved{Target: name, Name: called, Entries: []limit.Asked{{On: "/data", Limit: writes(1)}}}
		text, err := r.Text()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{SavedPath(name): text}
	}
	files := record("docker:"+id, "docker:web")
	for _, more := range []map[string]string{record("docker:"+other, "docker:two"), record("podman:"+other, "docker:two")} {
		for name, text := range more {
			files[name] = text
		}
	}
	scopeUnit := "docker-" + id + ".scope"
	files[dropin.Path(scopeUnit)] = savedText(t, limit.Asked{On: "/dev/vda", Limit: writes(1)})
	h, told := docker(t, files)
	stopped := &targets.StoppedError{Target: "docker:web", Why: "it is stopped", Unit: scopeUnit, Lasting: "docker:" + id, Record: updating(container(group(t, h), "")).Record}
	nothing := &targets.StoppedError{Target: "docker:x", Why: "it is stopped", Lasting: "docker:x"}
	notFound := &targets.NotFound{Target: "docker:web", Why: "no such container"}
	for name, c := range map[string]struct {
		spec  string
		found error
		files []string // that are removed; none: the error is found
	}{
		"stopped":             {"docker:web", stopped, []string{"", dropin.Path(scopeUnit), SavedPath("docker:" + id)}},
		"stopped, nothing":    {"docker:x", nothing, nil},
		"gone, by its name":   {"docker:web", notFound, []string{SavedPath("docker:" + id)}},
		"gone, by its id":     {"docker:" + id, notFound, []string{SavedPath("docker:" + id)}},
		"gone, with its kind": {"docker:web", &targets.NoKindError{Err: &fault.Unsupported{}}, []string{SavedPath("docker:" + id)}},
		"unknown":             {"docker:none", notFound, nil},
		"a unit of a copy":    {"unit:x.service", &targets.NotFound{Target: "unit:x.service"}, nil},
		"a domain of a copy":  {"vm:x", &targets.NotFound{Target: "vm:x"}, nil},
		"another error":       {"docker:web", errors.New("Docker does not answer"), nil},
	} {
		left, err := OfStopped(t.Context(), h, c.spec, c.found)
		if c.files == nil {
			if !errors.Is(err, c.found) {
				t.Errorf("%s: %+v, %v", name, left, err)
			}
			continue
		}
		steps, stepsErr := StepsOf(t.Context(), left.Actions)
		if err != nil || stepsErr != nil || len(steps) != len(c.files) || left.Target != c.spec || left.Owner.Kind != "docker" || !left.Writes {
			t.Errorf("%s: %+v, %+v, %v", name, left, steps, errors.Join(err, stepsErr))
			continue
		}
		for i, file := range c.files {
			if file != "" && steps[i].File != filepath.Join(h.Root, file) {
				t.Errorf("%s: %+v, want %s", name, steps[i], file)
			}
		}
	}
	if _, err := OfStopped(t.Context(), h, "docker:two", notFound); err == nil || !strings.Contains(err.Error(), "several targets") {
		t.Errorf("a name of two: %v", err)
	}
	// It is done: the engine is told, and the files go.
	left, err := OfStopped(t.Context(), h, "docker:web", stopped)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DoAll(t.Context(), left.Actions[:1]); err != nil || told() != `{"BlkioDeviceWriteBps":[]}` {
		t.Errorf("%v, told %s", err, told())
	}
	gone, err := OfStopped(t.Context(), h, "docker:web", notFound)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DoAll(t.Context(), gone.Actions); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(RecordPath(h, "docker:"+id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record is there: %v", err)
	}
}

// Of two configurations of a name it is enough to change one; if none can be, the domain is
// unknown.
func TestForgetConfigs(t *testing.T) {
	found := errors.New("no such domain")
	a := forgetConfigs{found: found}
	if _, err := a.Do(t.Context()); !errors.Is(err, found) {
		t.Errorf("%v", err)
	}
	if _, err := a.Steps(t.Context()); !errors.Is(err, found) {
		t.Errorf("%v", err)
	}
	domain(t, tuned)
	left, err := ofDomain(t.Context(), open(t, "v1", nil), "db", found)
	if err != nil || left.Target != "vm:db" || left.Owner.Kind != "libvirt" || left.Writes {
		t.Fatalf("%+v, %v", left, err)
	}
	steps, err := StepsOf(t.Context(), left.Actions)
	if err != nil || len(steps) != 2 { // the same name may be qemu's or lxc's
		t.Errorf("%+v, %v", steps, err)
	}
	if _, err := DoAll(t.Context(), left.Actions); err != nil {
		t.Error(err)
	}
	if _, err := ofDomain(t.Context(), open(t, "v1", nil), "no/name", found); !errors.Is(err, found) {
		t.Errorf("%v", err)
	}
}
