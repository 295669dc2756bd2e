package why_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// loadVariable makes the test binary write instead of test: "PATH SECONDS FILE". The
// writer is not weir's own: a test must not believe what it tests. It begins when its
// standard input ends, which is when it is in its group.
const loadVariable = "WEIR_WHY_LOAD"

func TestMain(m *testing.M) {
	if job := os.Getenv(loadVariable); job != "" {
		if err := write(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	// pace is the most that "writeback" writes per second: enough to tell whether a
	// limit of 2 MB/s holds it, and little enough for an emulated processor.
	pace       = 5e6
	blockBytes = 64 << 10
	fileBytes  = 4 << 20
)

func write(job string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	fields := strings.SplitN(job, " ", 3)
	seconds, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return err
	}
	flags := map[string]int{"direct": unix.O_DIRECT, "sync": unix.O_DSYNC, "fsync": 0, "msync": 0, "buffered": 0, "writeback": 0, "once": 0}[fields[0]]
	f, err := os.OpenFile(fields[2], os.O_RDWR|os.O_CREATE|flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	buf, err := unix.Mmap(-1, 0, blockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	var memory []byte
	if fields[0] == "msync" {
		if err := f.Truncate(fileBytes); err != nil {
			return err
		}
		if memory, err = unix.Mmap(int(f.Fd()), 0, fileBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
	}
	next := time.Now()
	end := next.Add(time.Duration(seconds * float64(time.Second)))
	for n := 0; time.Now().Before(end); n++ {
		at := n * blockBytes % fileBytes
		buf[0], buf[4096] = byte(n), byte(n)
		switch {
		case memory != nil:
			copy(memory[at:], buf)
			err = unix.Msync(memory[at:at+blockBytes], unix.MS_SYNC)
		default:
			_, err = f.WriteAt(buf, int64(at))
			switch {
			case err != nil:
			case fields[0] == "fsync":
				err = unix.Fdatasync(int(f.Fd()))
			case fields[0] == "writeback":
				err = unix.SyncFileRange(int(f.Fd()), int64(at), blockBytes, unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
				next = next.Add(time.Second * blockBytes / pace)
				if time.Now().After(next) { // what was missed is not made good
					next = time.Now()
				}
				time.Sleep(time.Until(next))
			}
		}
		if err != nil {
			return err
		}
		if fields[0] == "once" && at+blockBytes == fileBytes {
			return nil
		}
	}
	return nil
}

// start runs the writer in a group.
func start(t *testing.T, g group, path string, seconds float64, file string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %g %s", loadVariable, path, seconds, file))
	cmd.Stderr = os.Stderr
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	g.set(t, "cgroup.procs", strconv.Itoa(cmd.Process.Pid))
	if err := begin.Close(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// logCharged logs what a group was charged for on a disk, which tells others' writes from
// its own where more has reached the disk than should have.
func logCharged(t *testing.T, g group, disk *lab.TestDisk) {
	t.Helper()
	file := "blkio.throttle.io_service_bytes"
	if g.v2 {
		file = "io.stat"
	}
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, disk.Number.String()+" ") {
			t.Logf("charged: %s", strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Log(err)
	}
}

// rate writes in a group for some seconds, and returns what reached the disk a second.
func rate(t *testing.T, g group, disk *lab.TestDisk, path string, seconds float64, file string) float64 {
	t.Helper()
	_, before := lab.DeviceBytes(t, disk.Number)
	began := time.Now()
	if err := start(t, g, path, seconds, file).Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || path != "once" {
			t.Fatalf("%s to %s: %v", path, file, err)
		}
	}
	_, after := lab.DeviceBytes(t, disk.Number)
	return float64(after-before) / time.Since(began).Seconds()
}
