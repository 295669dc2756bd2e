package inherit

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// helper has the test binary start a program as the lab does.
const helper = "WEIR_INHERIT_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helper) == "" {
		os.Exit(m.Run())
	}
	Plain()
	if err := Unlimited(); err != nil {
		fmt.Println(err)
	}
	out, err := exec.Command("sh", "-c", "grep SigIgn /proc/self/status; umask; ulimit -n; ulimit -f").CombinedOutput()
	fmt.Print(strings.Join(strings.Fields(string(out)), " "))
	if err != nil {
		fmt.Print(err)
	}
}

// A program has the same signals, umask and limits, whatever the lab was started with.
func TestPlain(t *testing.T) {
	const odd = `trap "" HUP INT QUIT; umask 077; ulimit -S -n 128; ulimit -S -f 100; exec "$0"`
	cmd := exec.Command("sh", "-c", odd, os.Args[0])
	cmd.Env = append(os.Environ(), helper+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var ignored uint64
	var umask, files, size string
	if _, err := fmt.Sscanf(string(out), "SigIgn: %x %s %s %s", &ignored, &umask, &files, &size); err != nil {
		t.Fatalf("a program got %q: %v", out, err)
	}
	const ordinary = 1<<31 - 1 // signals up to 31; those beyond are libraries' own
	if ignored&ordinary != 0 || umask != "0022" || files != "4096" || size != "unlimited" {
		t.Errorf("a program got %q", out)
	}
}
