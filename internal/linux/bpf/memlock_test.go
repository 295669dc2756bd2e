package bpf

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestRaiseMemlock(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &before); err != nil {
			t.Error(err)
		}
	})
	const bytes = 32 << 10 // below the kernel's default, that the test needs no rights
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: bytes / 2, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // the second finds enough
		raised := RaiseMemlock(bytes)
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &now); err != nil {
			t.Fatal(err)
		}
		if raised != want || now.Cur != bytes || now.Max != before.Max {
			t.Errorf("raised: %t, want %t; the limit is %+v", raised, want, now)
		}
	}
}
