package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestShort(t *testing.T) {
	for in, want := range map[string]string{"7.2.13-1": "7.2", "7.2um1": "7.2", "6.1.176-1": "6.1", "6.12um1+b2": "6.12"} {
		if got := short(in); got != want {
			t.Errorf("short(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestModules(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "lib/modules/6.1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const dep = "kernel/md/dm-thin-pool.ko: kernel/md/dm-bufio.ko kernel/md/dm-mod.ko\n" +
		"kernel/md/dm-bufio.ko: kernel/md/dm-mod.ko\nkernel/md/dm-mod.ko:\nkernel/fs/xfs.ko.xz:\n"
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(dep), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Tree{Root: root, Release: "6.1"}.Modules([]string{"dm_thin-pool", "ext4"})
	want := []string{"kernel/md/dm-bufio.ko", "kernel/md/dm-mod.ko", "kernel/md/dm-thin-pool.ko"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestRelocate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "linux")
	if err := os.WriteFile(path, []byte("ELF/"+Interpreter+"\x00rest"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := relocate(path); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "ELF"+Interpreter+"\x00\x00rest" {
		t.Errorf("got %q, %v", data, err)
	}
	if err := relocate(path); err == nil {
		t.Error("a program without the interpreter was accepted")
	}
}
