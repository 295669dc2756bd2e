package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/internal/daemon/systemd"
)

// What the test binary is when it is started with one of these: a weir that runs a
// command in no group at all, and a command that names the signals it gets.
const (
	runArg   = "__run"
	countArg = "__count"
	apartArg = "__apart" // count in a process group of its own
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == WitnessArg:
		Witness(os.Stdin, os.Stdout)
	case len(os.Args) > 2 && os.Args[1] == runArg:
		os.Exit(runOnly(os.Args[2:]))
	case len(os.Args) == 2 && os.Args[1] == countArg:
		count()
	case len(os.Args) == 2 && os.Args[1] == apartArg:
		if err := unix.Setpgid(0, 0); err != nil {
			panic(err)
		}
		count()
	default:
		os.Exit(m.Run())
	}
}

func runOnly(args []string) int {
	ctx, signals := Catch(context.Background())
	defer signals.Stop()
	result, err := Host{}.Run(ctx, &Room{}, Command{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return result.Status
}

// count prints its parent's pid, and then each signal as it comes, until USR2.
func count() {
	came := make(chan os.Signal, 100)
	signal.Notify(came, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	fmt.Println(os.Getppid())
	for s := <-came; s != unix.SIGUSR2; s = <-came {
		fmt.Println(s)
	}
}

// A terminal is a weir that runs the counter, on a terminal of its own.
type terminal struct {
	t      *testing.T
	master *os.File
	lines  chan string // of the counter
	weir   int         // its pid, and that of its process group if it leads the session
	ended  chan int    // the status of the session's leader
}

// open starts weir on a terminal: as the leader of its session, or from a shell that is.
func open(t *testing.T, shell ...string) *terminal {
	t.Helper()
	return openWith(t, countArg, shell...)
}

func openWith(t *testing.T, counter string, shell ...string) *terminal {
	t.Helper()
	master, slave := ptytest.Open(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Tests that run under nohup, or in the background, have signals ignored.
	args := append([]string{"env", "--default-signal=HUP,INT,QUIT"}, shell...)
	args = append(args, exe, runArg, exe, counter)
	cmd := exec.Command(args[0], args[1:]...)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, in, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	in.Close()
	term := &terminal{t: t, master: master, lines: make(chan string, 100), ended: make(chan int, 1)}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			term.lines <- lines.Text()
		}
		close(term.lines)
	}()
	go func() {
		_ = cmd.Wait() // the status says it
		term.ended <- status(cmd.ProcessState)
	}()
	if _, err := fmt.Sscan(term.line(), &term.weir); err != nil {
		t.Fatal(err)
	}
	group, err := unix.Getpgid(term.weir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() { // what is left of it would keep the test's output open
			_, _ = unix.Kill(-group, unix.SIGKILL), unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		}
	})
	return term
}

func (term *terminal) line() string {
	term.t.Helper()
	select {
	case line := <-term.lines:
		return line
	case <-time.After(20 * time.Second):
		term.t.Fatal("the command said nothing")
		return ""
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

func (term *terminal) kill(pid int, s syscall.Signal) {
	term.t.Helper()
	if err := unix.Kill(pid, s); err != nil {
		term.t.Fatal(err)
	}
}

// got checks that the command has got a signal once. weir handles signals one after
// the other, so a second one would be there before the USR1 that follows it.
func (term *terminal) got(want syscall.Signal, how string) {
	term.t.Helper()
	if line := term.line(); line != want.String() {
		term.t.Fatalf("%s: the command got %q, want %q", how, line, want)
	}
	term.kill(term.weir, unix.SIGUSR1)
	if line := term.line(); line != unix.SIGUSR1.String() {
		term.t.Fatalf("%s: the command got %q after %q, want it once", how, line, want)
	}
}

func (term *terminal) end(want int) {
	term.t.Helper()
	term.kill(term.weir, unix.SIGUSR2)
	if got := <-term.ended; got != want {
		term.t.Errorf("the session ended with %d, want %d", got, want)
	}
}

// Whoever sends a signal, and to whom, the command gets it once.
func TestOnATerminalTheCommandGetsEachSignalOnce(t *testing.T) {
	term := open(t)
	for range 3 {
		term.press("\x03")
		term.got(unix.SIGINT, "Ctrl-C")
		term.kill(term.weir, unix.SIGINT)
		term.got(unix.SIGINT, "kill -INT weir")
		term.press("\x1c")
		term.got(unix.SIGQUIT, `Ctrl-\`)
		term.kill(-term.weir, unix.SIGQUIT)
		term.got(unix.SIGQUIT, "kill -QUIT -group")
		term.kill(term.weir, unix.SIGTERM)
		term.got(unix.SIGTERM, "kill -TERM weir")
	}
	// The kernel tells the leader of the session alone.
	term.master.Close()
	term.got(unix.SIGHUP, "hangup")
	term.end(0)
}

// TERM to weir and the witness, as from kill $(pidof weir), must end the command.
func TestTERMIsHandedOnWhateverTheWitnessSaw(t *testing.T) {
	w, err := newWitness(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.dismiss()
	if err := unix.Kill(w.cmd.Process.Pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "20")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	signals <- unix.SIGTERM
	go func() { ended <- cmd.Wait() }()
	_ = forward(t.Context(), cmd.Process, signals, w, ended) // the status says it
	if got := status(cmd.ProcessState); got != 128+int(unix.SIGTERM) {
		t.Errorf("the command ended with %d", got)
	}
}

// A command in another process group gets what weir's group gets, from weir.
func TestACommandInAnotherProcessGroupGetsEachSignalOnce(t *testing.T) {
	term := openWith(t, apartArg)
	term.kill(-term.weir, unix.SIGINT)
	term.got(unix.SIGINT, "kill -INT -group")
	term.kill(term.weir, unix.SIGINT)
	term.got(unix.SIGINT, "kill -INT weir")
	term.end(0)
}

// What was sent to the witness alone is soon forgotten.
func TestWhatTheWitnessSawExpires(t *testing.T) {
	w, err := newWitness(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.dismiss()
	for _, wait := range []time.Duration{0, creditLife + lateness} {
		if err := unix.Kill(w.cmd.Process.Pid, unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
		if saw := w.saw(unix.SIGUSR1); saw != (wait == 0) || w.gone {
			t.Errorf("after %s the witness saw it: %t", wait, saw)
		}
	}
}

// In a script, Ctrl-C and the hangup that the leader's end brings go to all.
func TestInAScriptTheCommandGetsEachSignalOnce(t *testing.T) {
	term := open(t, "sh", "-c", `trap : INT; trap "exit 3" HUP; "$@"; exit 4`, "sh")
	term.press("\x03")
	term.got(unix.SIGINT, "Ctrl-C")
	term.kill(term.weir, unix.SIGINT)
	term.got(unix.SIGINT, "kill -INT weir")
	term.end(4)
}

// Ctrl-Z stops weir with its command, and continuing its group continues both.
func TestStoppedAndContinued(t *testing.T) {
	term := open(t, "sh", "-mc", `"$@"; kill -CONT %1; fg %1 >/dev/null; exit $?`, "sh")
	term.press("\x1a")
	term.kill(term.weir, unix.SIGINT)
	term.got(unix.SIGINT, "kill -INT weir, and fg")
	term.press("\x03")
	term.got(unix.SIGINT, "Ctrl-C after fg")
	term.end(0)
}

// Without a terminal, all that weir gets is handed on.
func TestWithoutATerminalSignalsAreHandedOn(t *testing.T) {
	term := open(t, "setsid", "-w")
	for range 2 {
		term.kill(term.weir, unix.SIGINT)
		term.got(unix.SIGINT, "kill -INT weir")
	}
	term.end(0)
}

func TestASignalBeforeTheCommandEndsTheRun(t *testing.T) {
	ctx, signals := Catch(t.Context())
	defer signals.Stop()
	if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	started := filepath.Join(t.TempDir(), "started")
	result, err := Host{}.Run(ctx, &Room{}, Command{Args: []string{"touch", started}, Signals: signals})
	var signaled *SignalError
	if !errors.As(err, &signaled) || signaled.Signal != unix.SIGTERM || result.Ended {
		t.Errorf("Run = %+v, %v; want a SignalError", result, err)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the command was started")
	}
}

// What comes before the command, but after the watch, ends the run too.
func TestASignalThatTheWatchLeftEndsTheRun(t *testing.T) {
	ctx, signals := Catch(t.Context())
	defer signals.Stop()
	signals.take()
	signals.caught <- unix.SIGWINCH
	signals.caught <- unix.SIGHUP
	result, err := Host{}.Run(ctx, &Room{}, Command{Args: []string{"true"}, Signals: signals})
	var signaled *SignalError
	if !errors.As(err, &signaled) || signaled.Signal != unix.SIGHUP || result.Ended {
		t.Errorf("Run = %+v, %v; want a SignalError", result, err)
	}
}

// Signals that do not end a process do not end weir either.
func TestAResizeEndsNothing(t *testing.T) {
	ctx, signals := Catch(t.Context())
	defer signals.Stop()
	// When the watch takes the third it is done with the others.
	for _, s := range []syscall.Signal{unix.SIGWINCH, unix.SIGCONT, unix.SIGWINCH} {
		signals.caught <- s
	}
	for deadline := time.Now().Add(20 * time.Second); len(signals.caught) > 0 && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody takes the signals")
		}
	}
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	signals.take()
	signals.caught <- unix.SIGWINCH
	if result, err := (Host{}).Run(ctx, &Room{}, Command{Args: []string{"true"}, Signals: signals}); err != nil || !result.Ended {
		t.Errorf("Run = %+v, %v", result, err)
	}
}

// A signal while weir connects to systemd ends it as any other.
func TestASignalEndsConnecting(t *testing.T) {
	ctx, signals := Catch(t.Context())
	defer signals.Stop()
	signals.caught <- unix.SIGTERM
	h := Host{Holder: hold.Holder{Connect: func(ctx context.Context) (*systemd.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	var signaled *SignalError
	if _, err := h.connect(ctx); !errors.As(err, &signaled) {
		t.Errorf("connect: %v, want a SignalError", err)
	}
}
