package bpf

import (
	"os"
	"testing"
)

func TestInHostCgroups(t *testing.T) {
	name, err := os.Readlink("/proc/self/ns/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	// PROC_CGROUP_INIT_INO, as the kernel writes it
	if got, err := InHostCgroups(); err != nil || got != (name == "cgroup:[4026531835]") {
		t.Errorf("in %s: %t, %v", name, got, err)
	}
}
