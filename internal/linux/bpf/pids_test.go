package bpf

import (
	"os"
	"testing"
)

func TestInHostPIDs(t *testing.T) {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	// PROC_PID_INIT_INO, as the kernel writes it
	if got, err := InHostPIDs(); err != nil || got != (name == "pid:[4026531836]") {
		t.Errorf("in %s: %t, %v", name, got, err)
	}
}
