package trace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
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
	File    string
	Groups  []string      // directories of groups that it enters first
	For     time.Duration // 0: until it is stopped
	Flags   int           // of open(2), beside O_RDWR and O_CREAT
	Block   int
	Size    int64 // where it goes round
	Fsync   int   // after this many writes; 0: never
	Pause   time.Duration
	Threads int // 0: one
	Read    bool
}

// timed is how many calls there were, and how long they took together.
type timed struct {
	Count int
	Took  time.Duration
}

// done is what a job says of itself.
type done struct{ Write, Read, Fsync timed }

func (t *timed) call(do func() error) error {
	began := time.Now()
	err := do()
	t.Took += time.Since(began)
	t.Count++
	return err
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
	results := make(chan done)
	failed := make(chan error, max(j.Threads, 1))
	for i := range max(j.Threads, 1) {
		go func() {
			runtime.LockOSThread()
			d, err := j.work(fmt.Sprint(j.File, i))
			failed <- err
			results <- d
		}()
	}
	var sum done
	for range max(j.Threads, 1) {
		if err := <-failed; err != nil {
			return err
		}
		d := <-results
		for _, p := range []struct{ to, from *timed }{{&sum.Write, &d.Write}, {&sum.Read, &d.Read}, {&sum.Fsync, &d.Fsync}} {
			p.to.Count += p.from.Count
			p.to.Took += p.from.Took
		}
	}
	return json.NewEncoder(os.Stdout).Encode(sum)
}

func (j job) work(file string) (d done, err error) {
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CREAT|j.Flags, 0o600)
	if err != nil {
		return d, fmt.Errorf("open %s: %w", file, err)
	}
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, j.Block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return d, err
	}
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	blocks := j.Size / int64(j.Block)
	for n, began := int64(0), time.Now(); j.For == 0 || time.Since(began) < j.For; n++ {
		at := n % blocks * int64(j.Block)
		what, do := &d.Write, func() error { return whole(unix.Pwrite(fd, buf, at)) }
		if j.Read {
			what, do = &d.Read, func() error { return whole(unix.Pread(fd, buf, at)) }
		}
		if err := what.call(do); err != nil {
			return d, err
		}
		if j.Fsync > 0 && n%int64(j.Fsync) == int64(j.Fsync)-1 {
			if err := d.Fsync.call(func() error { return unix.Fsync(fd) }); err != nil {
				return d, err
			}
		}
		time.Sleep(j.Pause)
	}
	return d, nil
}

func whole(_ int, err error) error { return err }

// start runs a job beside the test; the function waits for what it says of itself.
func (j job) start(t *testing.T) func() done {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		select {
		case <-ended:
		default:
			_ = cmd.Process.Kill()
			<-ended
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

// setting writes a setting of the kernel's, and puts it back.
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

func groupDir(t *testing.T, root, name string) string {
	t.Helper()
	dir := root + "/" + name
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		lab.Await(t, 30*time.Second, "group "+dir+" to be empty", func() bool {
			err := os.Remove(dir)
			return err == nil || os.IsNotExist(err)
		})
	})
	return dir
}
