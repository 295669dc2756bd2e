package background

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asked has this test's program be a background weir, which says what it holds.
const asked = "WEIR_TEST_BACKGROUND"

func TestMain(m *testing.M) {
	if os.Getenv(endless) != "" {
		fmt.Println(beEndless())
		return
	}
	if os.Getenv(asked) == "" {
		os.Exit(m.Run())
	}
	if err := Shed(); err != nil {
		fmt.Println(err)
	}
	session, err := unix.Getsid(0)
	dir, wdErr := os.Getwd()
	fmt.Println(session == os.Getpid(), dir, err, wdErr)
	_, _ = io.ReadAll(os.Stdin) // until the test has looked
}

// A background weir has its own session and directory, and lets go of a lock that its
// caller holds through an inherited descriptor.
func TestNothingIsInherited(t *testing.T) {
	lock, err := os.CreateTemp(t.TempDir(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(lock.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	cmd := Command("__test")
	cmd.Env = append(cmd.Env, asked+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := said.Read(answer)
	if err != nil || string(answer[:n]) != "true / <nil> <nil>\n" {
		t.Errorf("it says %q (%v), want its own session and /", answer[:n], err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("flock", "--nonblock", lock.Name(), "true").CombinedOutput(); err != nil {
		t.Errorf("the lock is held still: %v %s", err, out)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Only root's helpers are helpers: their starter can have them do what he wants. Who is a load
// becomes none, and is not to be taken for one that may.
func TestOnlyRootsHelpersAreHelpers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it starts a process as another user")
	}
	for _, c := range []struct {
		uid     uint32
		kind    string
		is, may bool
	}{
		{0, Keeper, true, false},
		{65534, Keeper, false, false},
		{0, "run", false, true},
		{65534, "run", false, false},
		{0, "__load", false, false},
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{"weir", c.kind}
		cmd.Env = append(os.Environ(), asked+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Start returns while the kernel is still at the execve: there are no arguments for a moment.
		for end := time.Now().Add(10 * time.Second); !strings.Contains(argsOf(cmd.Process.Pid), c.kind) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if is, may := IsHelper(cmd.Process.Pid), MayBecomeHelper(cmd.Process.Pid); is != c.is || may != c.may {
			t.Errorf("%s of user %d is a helper: %v, may become one: %v", c.kind, c.uid, is, may)
		}
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
