package guestrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/inherit"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/payload"
)

// Config is one guest's run.
type Config struct {
	Payload string // unpacked
	Results string // folder for logs and statuses
	Environ string // file that WEIR_LAB names
	Lane    string
	// Measured tests wait for the kernel most of the time, so that more of them than
	// processors run at once, each on its own disk.
	Parallel int // go test's -parallel
	AtOnce   int // how many suites run at once, if they bear that; 0 is one
	Run      string
	Short    bool
	Timeout  time.Duration // of all suites together
	Slow     float64       // how much longer than others the machine takes
	Env      []string      // added to the tests' environment
	Events   io.Writer     // gets each line that says a test began or ended
	Attr     func() *syscall.SysProcAttr
}

// readOrder reads what an unpacked payload is for.
func readOrder(dir string) (payload.Order, error) {
	var order payload.Order
	data, err := os.ReadFile(filepath.Join(dir, payload.JobFile))
	if err != nil {
		return order, fmt.Errorf("read job: %w", err)
	}
	if err := json.Unmarshal(data, &order); err != nil {
		return order, fmt.Errorf("read job: %w", err)
	}
	return order, nil
}

// Run runs all suites, some of them beside others. Failing tests are no error: their
// status is in Results. Events is written to from several goroutines.
func Run(ctx context.Context, c Config) error {
	order, err := readOrder(c.Payload)
	if err != nil {
		return err
	}
	c.Env = append(slices.Clone(c.Env), order.Env...)
	defer unix.Umask(inherit.Plain())
	if err := os.MkdirAll(filepath.Join(c.Results, "suites"), 0o755); err != nil {
		return fmt.Errorf("run job: %w", err)
	}
	end := time.Now().Add(c.Timeout)
	slots := make(chan struct{}, max(c.AtOnce, 1))
	errs := make([]error, len(order.Suites))
	var running sync.WaitGroup
	for i, s := range order.Suites {
		if i > 0 && (!s.Beside || !order.Suites[i-1].Beside) {
			running.Wait()
		}
		if _, err := os.Stat(filepath.Join(c.Results, payload.StatusFile(s.Name))); err == nil {
			continue // it ended before the machine was booted again
		}
		slots <- struct{}{}
		running.Go(func() {
			errs[i] = c.suite(ctx, s, end)
			<-slots
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (c Config) suite(ctx context.Context, s guest.Suite, end time.Time) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("run %s: %w", s.Package, err)
		}
	}()
	_, _ = fmt.Fprintf(c.Events, "lab: suite %s\n", s.Name)
	log, err := os.Create(filepath.Join(c.Results, payload.OutputFile(s.Name)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	dir := filepath.Join(c.Payload, "suites", s.Name)
	// The test binary ends itself at its timeout with a list of goroutines; the
	// context is for one that does not even do that.
	left := max(time.Until(end), 2*stuckTime)
	ctx, cancel := context.WithTimeout(ctx, left+10*time.Second)
	defer cancel()
	stuck := time.AfterFunc(left-stuckTime, func() { reportStuck(log, "/proc", c.Lane != "native") })
	defer stuck.Stop()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "test"), c.args(left)...)
	cmd.Dir = dir
	cmd.Env = append(c.env(), "PWD="+dir)
	out := &events{log: log, to: c.Events}
	cmd.Stdout, cmd.Stderr = out, out
	// A child that outlives its test may hold the pipe; so may a guest that gets no time.
	cmd.WaitDelay = time.Duration(5 * max(1, c.Slow) * float64(time.Second))
	// The session has no terminal, wherever the lab was started; what would come from one, such
	// as Ctrl-C, goes to all processes of the suite.
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if c.Attr != nil {
		cmd.SysProcAttr = c.Attr()
	}
	cmd.SysProcAttr.Setsid = true
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGINT) }
	began := time.Now()
	runErr := cmd.Run()
	status := payload.Status{Exit: -1, Seconds: time.Since(began).Seconds()}
	if cmd.ProcessState != nil {
		status.Exit = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	if runErr != nil && !errors.As(runErr, &exit) {
		_, _ = fmt.Fprintf(log, "\nlab: %v\n", runErr)
		if status.Exit == 0 {
			status.Exit = -1
		}
	}
	data, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Results, payload.StatusFile(s.Name)), data, 0o644)
}

func (c Config) args(timeout time.Duration) []string {
	args := []string{
		"-test.v=test2json",
		"-test.paniconexit0",
		"-test.timeout=" + timeout.String(),
		"-test.parallel=" + strconv.Itoa(c.Parallel),
	}
	if c.Run != "" {
		args = append(args, "-test.run="+c.Run)
	}
	if c.Short {
		args = append(args, "-test.short")
	}
	return args
}

func (c Config) env() []string {
	path := filepath.Join(c.Payload, "bin") + ":/usr/sbin:/usr/bin:/sbin:/bin"
	return append([]string{
		"PATH=" + path,
		"HOME=/root",
		"TMPDIR=" + os.TempDir(),
		"LANG=C.UTF-8",
		environ.Variable + "=" + c.Environ,
	}, c.Env...)
}

// events copies all to log, and passes on the lines about tests beginning and
// ending, so that the console of a guest that hangs says where.
type events struct {
	log, to io.Writer
	line    []byte
}

func (e *events) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != '\n' {
			if len(e.line) < 300 {
				e.line = append(e.line, b)
			}
			continue
		}
		line := bytes.TrimLeft(e.line, "\x16 ")
		if bytes.HasPrefix(line, []byte("=== RUN")) || bytes.HasPrefix(line, []byte("--- ")) {
			_, _ = fmt.Fprintf(e.to, "%s\n", line)
		}
		e.line = e.line[:0]
	}
	return e.log.Write(p)
}
