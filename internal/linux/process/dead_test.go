package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

// A process can wait for a child after it has joined others that had ended before. What the child has done is
// nothing of the others'.
func TestSumOfADeadChild(t *testing.T) {
	const bytes = 1 << 20
	cmd := exec.Command("head", "-c", strconv.Itoa(bytes), "/dev/zero")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd.Stdout = null // head writes to it itself
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the child has ended", func() bool {
		stat, err := ReadStat(cmd.Process.Pid)
		return err == nil && stat.Ended
	})
	if !slices.Contains(dead(os.Getpid()), cmd.Process.Pid) {
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())); err != nil {
			t.Skip("this kernel lists no children")
		}
		t.Error("it is not found")
	}
	var s Sum
	defer s.Close()
	s.Look([]int{os.Getpid()}, Proc)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := s.Look([]int{os.Getpid()}, Proc); got.WChar >= bytes {
		t.Errorf("it has written %d bytes", got.WChar)
	}
}
