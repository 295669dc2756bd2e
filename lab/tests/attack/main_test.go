package attack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const (
	user  = 4000 // who attacks
	other = 4001
	// soon is how long a weir may take beside an attack: most have milliseconds to do.
	soon = 40 * time.Second
	// attackVariable has a test's binary attack, with words after the attack's name.
	attackVariable = "WEIR_LAB_ATTACK"
)

// attacks are what a process of the user's does until its input ends.
var attacks = map[string]func(args []string) error{
	"wait": func([]string) error { return nil },
}

func TestMain(m *testing.M) {
	if words := os.Getenv(attackVariable); words != "" {
		os.Exit(attack(strings.Split(words, "\x1e")))
	}
	os.Exit(m.Run())
}

// attack waits for its beginning, attacks, and waits for its end.
func attack(words []string) int {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return 1
	}
	if err := attacks[words[0]](words[1:]); err != nil {
		fmt.Println("no: " + strconv.Quote(err.Error()))
		return 1
	}
	fmt.Println("ready")
	_, _ = in.ReadString('\n') // the end of the test
	return 0
}

// An attacker is a process that the user runs.
type attacker struct {
	cmd *exec.Cmd
	in  interface{ Close() error }
	out *bufio.Reader
	ask func() error
}

// start starts an attacker, which does not attack yet.
func start(t *testing.T, change func(*exec.Cmd), words ...string) *attacker {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run", "^$")
	cmd.Env = append(os.Environ(), attackVariable+"="+strings.Join(words, "\x1e"), "HOME=/nowhere")
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, NoSetGroups: false}, Setpgid: true}
	if change != nil {
		change(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // with what it has started
		_ = cmd.Wait()
	})
	return &attacker{cmd: cmd, in: in, out: bufio.NewReader(out), ask: func() error { _, err := in.Write([]byte("\n")); return err }}
}

// begin has it attack, and waits until it is under way.
func (a *attacker) begin(t *testing.T) *attacker {
	t.Helper()
	if err := a.ask(); err != nil {
		t.Fatal(err)
	}
	if line, err := a.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the attack: %q, %v", line, err)
	}
	return a
}

func (a *attacker) pid() string { return strconv.Itoa(a.cmd.Process.Pid) }

// weir runs weir as root, which must end soon and print nothing but text.
func weir(t *testing.T, args ...string) (said string, status int) {
	t.Helper()
	return run(t, nil, args...)
}

func run(t *testing.T, change func(*exec.Cmd), args ...string) (said string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, "weir", args...)
	if change != nil {
		change(cmd)
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	said = string(out)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Errorf("weir %.200q has not ended after %s:\n%.2000s", args, soon, said)
	case err != nil && !errors.As(err, &exit):
		t.Errorf("weir %.200q: %v", args, err)
	}
	if i := strings.IndexFunc(said, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
		t.Errorf("weir %.200q prints a control character: %q", args, said[max(0, i-80):min(len(said), i+20)])
	}
	if strings.Contains(said, "panic:") || strings.Contains(said, "goroutine ") {
		t.Errorf("weir %.200q: %s", args, said)
	}
	return said, cmd.ProcessState.ExitCode()
}

// works runs weir, which must do what it was asked to.
func works(t *testing.T, args ...string) string {
	t.Helper()
	said, status := weir(t, args...)
	if status != 0 {
		t.Errorf("weir %.200q: status %d\n%.3000s", args, status, said)
	}
	return said
}

// answers runs a weir that says what it knows: that it cannot tell, or that something is not
// held, are answers.
func answers(t *testing.T, args ...string) string {
	t.Helper()
	said, status := weir(t, args...)
	if status < 0 || status > 3 || status == 2 || said == "" {
		t.Errorf("weir %.200q: status %d\n%.3000s", args, status, said)
	}
	return said
}

// refuses runs weir, which must not do it, and say so.
func refuses(t *testing.T, args ...string) string {
	t.Helper()
	said, status := weir(t, args...)
	if status == 0 || len(said) == 0 {
		t.Errorf("weir %.200q: status %d\n%.3000s", args, status, said)
	}
	return said
}

// home makes a directory on a disk that belongs to the user.
func home(t *testing.T, disk *lab.TestDisk) string {
	t.Helper()
	if err := os.Chmod(disk.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(disk.Dir); dir != "/" && dir != "/tmp"; dir = filepath.Dir(dir) { // tests' directories are root's alone
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(disk.Dir, "home")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, user, user)); err != nil {
		t.Fatal(err)
	}
	return dir
}
