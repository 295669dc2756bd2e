package background

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
)

// endless has this test's program be a process of a long command line.
const endless = "WEIR_TEST_ENDLESS"

// longLine is how long it is, in bytes. It could be a terabyte.
const longLine = 256 << 20

// beEndless has the kernel take a mapping for the process's command line (PR_SET_MM_MAP; any user
// may). It returns once the test has looked.
func beEndless() error {
	mapping, err := unix.Mmap(-1, 0, longLine, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	field := func(number int) (n uint64) { _, _ = fmt.Sscan(fields[number-3], &n); return n }
	begin := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mapping))))
	end := begin + longLine
	layout := struct { // prctl_mm_map
		startCode, endCode, startData, endData, startBrk, brk, startStack, argStart, argEnd, envStart, envEnd, auxv uint64
		auxvSize, exe                                                                                               uint32
	}{field(26), field(27), field(45), field(46), field(47), field(47), field(28), begin, end, end, end, 0, 0, ^uint32(0)}
	if err := unix.Prctl(unix.PR_SET_MM, unix.PR_SET_MM_MAP, uintptr(unsafe.Pointer(&layout)), unsafe.Sizeof(layout), 0); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
	return nil
}

// The pacer looks at the command line of each process that joins a group, and a process can make
// its own as long as it likes.
func TestALongCommandLineIsNotReadWhole(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), endless+"=1")
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
	defer func() { _, _ = stdin.Close(), cmd.Wait() }()
	line, err := bufio.NewReader(said).ReadString('\n')
	switch { // where the call is refused, nobody can have such a command line
	case strings.Contains(line, unix.EINVAL.Error()):
		t.Skip("this kernel is built without CONFIG_CHECKPOINT_RESTORE: no process can change where its command line is")
	case strings.Contains(line, unix.EPERM.Error()):
		t.Skip("the kernel does not allow this process to change where its command line is (PR_SET_MM_MAP)")
	}
	if err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	began := time.Now()
	if n := len(argsOf(cmd.Process.Pid)); n != peek.Short {
		t.Errorf("%d bytes are read", n)
	}
	if IsHelper(cmd.Process.Pid) {
		t.Error("it is taken for a helper of weir")
	}
	t.Logf("it took %s", time.Since(began))
}
