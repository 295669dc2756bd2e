package initramfs

import (
	"slices"
	"testing"
)

func TestLibraries(t *testing.T) {
	const out = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibuuid.so.1 => /lib/x86_64-linux-gnu/libuuid.so.1 (0x00007f)\n" +
		"\tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
	want := []string{"/lib/x86_64-linux-gnu/libuuid.so.1", "/lib64/ld-linux-x86-64.so.2"}
	if got := libraries(out); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
