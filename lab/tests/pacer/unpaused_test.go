package pacer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// A pacer that has paused nobody holds its groups all the same. If it is killed it is replaced, and
// if it is stopped it is ended and replaced.
func TestKillsOfAPacerOfAnEmptyGroup(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Newest, lab.NoSystemd, lab.FS("ext4"))
	killsUnpaused(t, "lab-empty", "pacer", pacer.CountWritten)
}

// That goes for a group too that is only watched for what it writes past the kernel's limit.
func TestKillsOfAPacerThatWatches(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.NoSystemd, lab.FS("ext4"))
	killsUnpaused(t, "lab-watched", "auto", pacer.CountEscaped)
}

func killsUnpaused(t *testing.T, name, hold, count string) {
	t.Helper()
	e := lab.Here(t)
	disk := lab.Disk(t, lab.FS("ext4"))
	lab.Cgroup(t, e.Cgroups.Unified+"/"+name)
	limited := pacer.Place{Path: "/" + name}
	weir(t, "set", "cgroup:"+limited.Path, "--write", fmt.Sprint(lab.Scaled(e, 10<<20)), "--on", disk.Dir, "--hold", hold)
	client := pacer.Client{State: state.At("/")}
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
		var before []int
		lab.Await(t, 20*time.Second, "one pacer and its guards", func() bool {
			before = lab.Called(t, "__pacer")
			return len(before) == 1 && len(lab.Called(t, "__guard")) == guards
		})
		jobs, err := pacer.Paced(client.State)
		if err != nil || len(jobs) != 1 || jobs[0].Limited != limited || jobs[0].Count != count {
			t.Fatalf("on record: %+v, %v", jobs, err)
		}
		began := time.Now()
		send(t, signal, before...)
		most := stoppedMax(e)
		if signal == unix.SIGSTOP { // a guard gives it three seconds
			most += 4 * time.Second
		}
		another := func() bool {
			now := lab.Called(t, "__pacer")
			return len(now) > 0 && !slices.Equal(now, before) && !slices.Contains(now, before[0])
		}
		for !another() {
			if time.Since(began) > most {
				send(t, unix.SIGKILL, before...) // else a stopped one would stay
				t.Fatalf("after %s there was no other pacer for %s", unix.SignalName(signal), most)
			}
			time.Sleep(time.Millisecond)
		}
		t.Logf("after %s there was another pacer in %s", unix.SignalName(signal), time.Since(began))
		lab.Await(t, 20*time.Second, "the group to be held again", func() bool {
			seen, err := client.Seen(limited)
			return err == nil && seen.Told == (count == pacer.CountEscaped)
		})
	}
	weir(t, "clear", "cgroup:"+limited.Path)
}
