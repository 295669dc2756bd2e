package watch_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// groupsVariable says how many limited groups TestCost makes, and besideVariable names a cAdvisor to be measured in the
// same run.
const groupsVariable, besideVariable = "WEIR_GROUPS", "WEIR_CADVISOR"

// What watching may cost on a host of its own, in shares of one processor and bytes.
const (
	topMost, metricsMost = 0.01, 0.02
	residentMost         = 40e6
	costFor              = 45 * time.Second
	scrapeEvery          = 15 * time.Second // Prometheus' usual interval is 15 s to 60 s
	below                = 50               // groups below each one
	movers               = 20
)

// Watching many limited groups costs little: weir top each second, weird, which records history, with a scraper, and
// weird run, whose readings another weir top has. The bounds are for this host itself, where a system call takes what
// it should.
func TestCost(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Whole, lab.NoSystemd, lab.FS("ext4"))
	n := lab.Times(t, groupsVariable, 100)
	s := makeSubject(t, e, "weir-watch-cost")
	var slice string
	var groups []string
	for i := range n {
		if i%below == 0 {
			slice = filepath.Join(s.dir, fmt.Sprintf("s%d.slice", i/below))
			s.enable(t, s.dir)
			lab.Cgroup(t, slice)
			s.enable(t, slice)
		}
		group := filepath.Join(slice, fmt.Sprintf("g%d.service", i))
		lab.Cgroup(t, group)
		s.limit(t, group)
		groups = append(groups, group)
	}
	for i := range min(movers, n) {
		s.dir = groups[i*len(groups)/min(movers, n)]
		s.run(t, load.Job{Path: load.Direct, Block: 4096, Size: 1 << 20, Pace: 40000})
	}
	metrics := serve(t, "--history", s.history())
	top := onTerminal(t, "weird", "top", "--alone")
	k := newKeeper(t)
	k.start(t)
	follower := onTerminal(t, "weird", "top", "--socket", k.socket)
	time.Sleep(5 * time.Second) // who the groups are is asked at first
	metrics.scrape(t)
	programs := []struct {
		what string
		pid  int
		most float64 // of a processor; 0 where it is only told
	}{{"weir top, each second", top, topMost}, {"weird, recording each second, a scrape each 15 s", metrics.pid, metricsMost},
		{"weird run, with a weir top that follows", k.cmd.Process.Pid, topMost}, {"weir top that follows weird run", follower, topMost}}
	other := beside(t)
	if other.pid != 0 {
		other.page(t)
		programs = append(programs, struct {
			what string
			pid  int
			most float64
		}{"cAdvisor, each second, a scrape each 15 s", other.pid, 0})
	}
	before := make([]time.Duration, len(programs))
	for i, p := range programs {
		before[i] = processor(t, p.pid)
	}
	began, size := time.Now(), 0
	for next := began; time.Since(began) < costFor; {
		if !time.Now().Before(next) {
			next = next.Add(scrapeEvery)
			page := metrics.scrape(t)
			limits := 0
			for line := range page {
				if strings.HasPrefix(line, "weir_io_limit_written_bytes_per_second{") {
					limits++
				}
			}
			if size = len(page); limits != n {
				t.Fatalf("a page with the limits of %d groups, want %d", limits, n)
			}
			if other.pid != 0 {
				t.Logf("cAdvisor's page: %d bytes", len(other.page(t)))
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	took := time.Since(began).Seconds()
	if alone, follows := processor(t, top)-before[0], processor(t, follower)-before[3]; e.Lane == "native" && follows >= alone {
		t.Errorf("a weir top that follows takes %v, and one that reads by itself %v", follows, alone)
	}
	for i, c := range programs {
		share, resident := (processor(t, c.pid)-before[i]).Seconds()/took, residentOf(t, c.pid)
		t.Logf("cost of %d groups: %s: %.2f %% of a processor, %.1f MB resident", n, c.what, 100*share, float64(resident)/1e6)
		if c.most != 0 && e.Lane == "native" && (share > c.most || resident > residentMost) {
			t.Errorf("%s: at most %.0f %% and %d MB are wanted", c.what, 100*c.most, int(residentMost/1e6))
		}
	}
	t.Logf("the page has %d lines", size)
}

// beside starts the cAdvisor that the environment names, if it names one. It must take --listen.
func beside(t *testing.T) scraper {
	t.Helper()
	name := os.Getenv(besideVariable)
	if name == "" {
		return scraper{}
	}
	const address = "127.0.0.1:18080"
	cmd := exec.Command(name, "--listen", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(lab.Patience(t, 30*time.Second)); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return scraper{"http://" + address + "/metrics", cmd.Process.Pid}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen at %s: %v", name, address, err)
		}
	}
}

// enable gives the groups below one the controllers.
func (s *subject) enable(t *testing.T, dir string) {
	t.Helper()
	if s.e.Cgroups.IOInV2 {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+io +memory"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// limit writes a rule as weir does, without starting weir thousands of times.
func (s *subject) limit(t *testing.T, group string) {
	t.Helper()
	file, line := "blkio.throttle.write_bps_device", s.disk.Number.String()+" 1000000"
	if s.e.Cgroups.IOInV2 {
		file, line = "io.max", s.disk.Number.String()+" wbps=1000000"
	}
	if err := os.WriteFile(filepath.Join(group, file), []byte(line), 0); err != nil {
		t.Fatal(err)
	}
}

// onTerminal starts a program on a terminal of its own, until the test ends, and reads what it
// shows.
func onTerminal(t *testing.T, name string, args ...string) (pid int) {
	t.Helper()
	master, slave := ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(terminate)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// processor is for how long the threads of a process have run. (Go's threads live as long as it.)
func processor(t *testing.T, pid int) (all time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, file := range threads {
		var ran time.Duration
		if _, err := fmt.Sscan(readFile(t, filepath.Dir(file), "schedstat"), &ran); err != nil { // in nanoseconds
			t.Fatal(err)
		}
		all += ran
	}
	return all
}

// residentOf is the memory that a process has, in bytes: its program, which is shared, included.
func residentOf(t *testing.T, pid int) (bytes int) {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d", pid), "status")) {
		if rest, is := strings.CutPrefix(line, "VmRSS:"); is {
			return int(number(t, strings.TrimSuffix(strings.TrimSpace(rest), " kB"))) << 10
		}
	}
	t.Fatalf("process %d has no size", pid)
	return 0
}
