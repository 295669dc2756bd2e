package main

import "testing"

func TestRootDisk(t *testing.T) {
	for line, want := range map[string]string{
		"quiet rw weir.mode=v2 root=/dev/vdk lab.modules=/dev/vdl\n": "/dev/vdk",
		"quiet root=98:0\n": "", // user-mode Linux's own
		"quiet\n":           "",
	} {
		if got := rootDisk(line); got != want {
			t.Errorf("rootDisk(%q) = %q, want %q", line, got, want)
		}
	}
}
