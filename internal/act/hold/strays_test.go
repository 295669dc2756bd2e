package hold

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/linux/process"
	"github.com/weir-io/weir/lab"
)

// Strays are who is in a group that is no unit's; who has ended is none.
func TestFindStrays(t *testing.T) {
	lab.Unit(t)
	mine, gone := pidLine(os.Getpid()), "4194304\n" // (one more than the kernel gives)
	files := map[string]string{}
	for group, tids := range map[string]string{
		"": mine, "/batch": mine + gone, "/user-\xff": mine, "/batch/x.service": mine, "/docker/3f2a": gone,
		"/system.slice": mine, "/system.slice/cron.service": mine, "/system.slice/cron.service/inner": mine,
	} {
		files[cgrouptest.V1Dir+group+"/tasks"] = tids
	}
	h := cgrouptest.New(t, cgroupfs.V1, files)
	found, err := findStrays(h.IO)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(found)
	var recorded strays
	if err != nil || json.Unmarshal(data, &recorded) != nil || !reflect.DeepEqual(recorded, found) {
		t.Errorf("on record is %s, %v, of %+v", data, err, found)
	}
	got := map[string]int{}
	for _, s := range found.Threads {
		got[string(s.Group)] = s.TID
	}
	for _, want := range []string{"/batch", "/user-\xff", "/batch/x.service", "/system.slice/cron.service/inner"} {
		if got[want] != os.Getpid() {
			t.Errorf("%s: %d", want, got[want])
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("%v are none", got)
	}
	self, err := process.ReadStat(os.Getpid())
	if err != nil || self.Parent != os.Getppid() || self.Started == 0 || self.Started > found.Found {
		t.Errorf("of this process: %+v, %v; found at %d", self, err, found.Found)
	}
	// One that has not been moved needs no write, which a fixture refuses.
	if err := found.restore(h.IO); err != nil {
		t.Errorf("where all are: %v", err)
	}
	h.Write(cgrouptest.V1Dir+"/batch/tasks", "")
	if err := found.restore(h.IO); !fault.IsUnsupported(err) {
		t.Errorf("one that was moved: %v", err)
	}
	for i := range found.Threads {
		found.Threads[i].Started = self.Started + 1
	}
	if err := found.restore(h.IO); err != nil {
		t.Errorf("one whose number is another's now: %v", err)
	}
}

// What a stray forks after it was found is one too.
func TestStraysHaveChildren(t *testing.T) {
	lab.Unit(t)
	h := cgrouptest.New(t, cgroupfs.V1, map[string]string{cgrouptest.V1Dir + "/batch/tasks": pidLine(os.Getpid())})
	found, err := findStrays(h.IO)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	if _, err := found.adopt(h.IO); !fault.IsUnsupported(err) {
		t.Errorf("a child: %v, want a write, which a fixture refuses", err)
	}
}

func pidLine(pid int) string { return strconv.Itoa(pid) + "\n" }
