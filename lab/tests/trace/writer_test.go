package trace_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// jobVariable makes the test binary do I/O instead of testing: a job as JSON.
const jobVariable = "WEIR_TRACE_JOB"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := runJob(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A job is I/O that measures itself: the load that a trace is held against.
type job struct {
	File   string
	Groups []string      // directories of groups that it enters first
	For    time.Duration // 0: until it is stopped
	Flags  int           // of open(2), beside O_RDWR and O_CREAT
	Block  int
	Size   int64 // where it goes round
	Fsync  int   // after this many writes; 0: never
	Pause  time.Duration
	Read   bool
	Cold   bool  // the file leaves the page cache at the beginning of each round
	Touch  bool  // changes nothing but the inode
	Hold   int   // bytes of memory that it keeps
	Fail   bool  // there may be no memory for a write
	First  bool  // in real time: who preempted it between a call's end and its clock would be in its own figure only
	Empty  bool  // a call that does nothing before each write or read, as quick or slow as the machine is then
	Uring  int   // requests of io_uring instead of calls, so many at a time: a power of 2
	Ask    uint8 // flags of the requests
	Polled bool  // by a thread of the kernel
	AIO    int   // requests of io_submit instead of calls, so many at a time
	Apart  bool  // each by a call of its own
	// Then is a file that Line is written to before the first operation.
	Then, Line string
}

// timed is how many calls there were, and how long they took together.
type timed struct {
	Count   int
	Took    time.Duration
	Longest []time.Duration // those that took longest, the longest first
	Loads   time.Duration   // where Took is of the kernel's record: by the load's own clock
}

// byLoad is by the load's own clock: what stops a task on its way back from a call the
// kernel does not record.
func (t timed) byLoad() timed {
	if t.Loads != 0 {
		t.Took, t.Loads = t.Loads, 0
	}
	return t
}

// longestMost is how many of the longest calls are kept.
const longestMost = 128

func (t *timed) add(took time.Duration, calls int) {
	t.Took += took
	t.Count += calls
	if len(t.Longest) < longestMost || took > t.Longest[len(t.Longest)-1] {
		i, _ := slices.BinarySearchFunc(t.Longest, took, func(a, b time.Duration) int { return cmp.Compare(b, a) })
		t.Longest = slices.Insert(t.Longest, i, took)
		t.Longest = t.Longest[:min(len(t.Longest), longestMost)]
	}
}

// usual is how long a call takes, without the longest: those were stopped, or waited for a processor.
func (t timed) usual() time.Duration {
	took, longest := t.Took, t.Longest[:min(len(t.Longest), t.Count/2)]
	for _, l := range longest {
		took -= l
	}
	return took / time.Duration(max(t.Count-len(longest), 1))
}

// done is what a job says of itself.
type done struct {
	Write, Read, Fsync timed
	Empty              timed // calls that do nothing: what measuring takes
	TID                int
}

// heard takes the times of the kernel's own record, if it has all of a kind's calls.
func (d *done) heard(all map[string]timed) {
	for kind, own := range map[string]*timed{"write": &d.Write, "read": &d.Read, "fsync": &d.Fsync} {
		if found := all[kind]; own.Count > 0 && found.Count >= own.Count {
			found.Loads, found.Count = own.Took, own.Count
			*own = found
		}
	}
}

// call does a system call on the thread it is on, without Go's scheduler, whose waits
// are not the kernel's.
func (t *timed) call(number uintptr, fd int, buf []byte, at int64) error {
	began := time.Now()
	_, _, errno := unix.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(at), 0, 0)
	t.add(time.Since(began), 1)
	if errno != 0 {
		return errno
	}
	return nil
}

func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	for _, dir := range j.Groups {
		if err := os.WriteFile(dir+"/cgroup.procs", []byte("0"), 0); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	if j.First && !j.Polled {
		if err := first(); err != nil {
			return err
		}
	}
	d, err := j.work()
	if err != nil {
		return err
	}
	d.TID = unix.Gettid()
	return json.NewEncoder(os.Stdout).Encode(d)
}

// first has the calling thread run in real time, or before most others, where it is in a v1 cpu group
// that real-time threads have no time of (cpu.rt_runtime_us is 0 in each new one).
func first() error {
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	if errors.Is(err, unix.EPERM) {
		return unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	}
	return err
}

func (j job) work() (d done, err error) {
	held := make([]byte, j.Hold)
	for i := range held {
		held[i] = 1
	}
	defer runtime.KeepAlive(held)
	if j.Then != "" {
		if err := os.WriteFile(j.Then, []byte(j.Line), 0); err != nil {
			return d, err
		}
	}
	fd, err := unix.Open(j.File, unix.O_RDWR|unix.O_CREAT|j.Flags, 0o600)
	if err != nil {
		return d, fmt.Errorf("open %s: %w", j.File, err)
	}
	defer unix.Close(fd)
	if j.Read {
		if err := unix.Ftruncate(fd, j.Size); err != nil {
			return d, err
		}
	}
	buf, err := unix.Mmap(-1, 0, j.Block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return d, err
	}
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	if j.Uring > 0 {
		return d, j.askFor(&d, fd, buf)
	}
	if j.AIO > 0 {
		return d, j.submitAll(&d, fd, buf)
	}
	blocks := j.Size / int64(j.Block)
	for n, began := int64(0), time.Now(); j.For == 0 || time.Since(began) < j.For; n++ {
		at := n % blocks * int64(j.Block)
		if j.Cold && at == 0 {
			if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
				return d, err
			}
		}
		if j.Empty {
			if err := d.Empty.call(unix.SYS_GETPPID, 0, buf, 0); err != nil {
				return d, err
			}
		}
		switch {
		case j.Touch:
			err = unix.Fchmod(fd, 0o600|uint32(n&1))
		case j.Read:
			err = d.Read.call(unix.SYS_PREAD64, fd, buf, at)
		default:
			err = d.Write.call(unix.SYS_PWRITE64, fd, buf, at)
			if j.Fail && err == unix.ENOMEM {
				err = nil
			}
		}
		if err != nil {
			return d, err
		}
		if j.Fsync > 0 && n%int64(j.Fsync) == int64(j.Fsync)-1 {
			if err := d.Fsync.call(unix.SYS_FSYNC, fd, buf, 0); err != nil {
				return d, err
			}
		}
		if j.Pause > 0 {
			time.Sleep(j.Pause)
		}
	}
	return d, nil
}

// start runs a job beside the test; the function waits for what it says of itself.
func (j job) start(t *testing.T) func() done {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	// Go interrupts a thread that is in one call for 10 ms, with a signal: its handler runs
	// between the call's end and the load's clock, and takes an emulated processor 0.5 ms.
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text), "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		if err := <-ended; err != nil {
			t.Logf("job: %v", err)
		}
	})
	return func() (d done) {
		t.Helper()
		err := <-ended
		ended <- nil
		if err != nil {
			t.Fatalf("job: %v", err)
		}
		if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
			t.Fatalf("job said %q: %v", out.String(), err)
		}
		return d
	}
}

// setting writes a kernel setting, and puts it back.
func setting(t *testing.T, path string, value uint64) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Of dirty_bytes and dirty_ratio the kernel sets the one to 0 when the other is written.
	if err := os.WriteFile(path, []byte(strconv.FormatUint(value, 10)), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if strings.TrimSpace(string(before)) == "0" {
			path, before = strings.Replace(path, "dirty_bytes", "dirty_ratio", 1), []byte("20")
		}
		if err := os.WriteFile(path, before, 0); err != nil {
			t.Error(err)
		}
	})
}
