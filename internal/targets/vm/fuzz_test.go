package vm

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzTune: of whatever virsh answers, each limit binds a device that it has named.
func FuzzTune(f *testing.F) {
	f.Add("weight : 0\ndevice_read_bytes_sec: /dev/vda,1000,/dev/vdb,0\ndevice_write_iops_sec: ")
	f.Add("device_read_bytes_sec: ,,,1")
	f.Add("device_read_bytes_sec: /dev/vda,-1")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseTune(text)
		for path, l := range all {
			if err == nil && !l.Bounds() {
				t.Errorf("%q: %v", path, l)
			}
		}
	})
}

// FuzzPID: a process's number is one, whatever is in libvirt's file.
func FuzzPID(f *testing.F) {
	for _, text := range []string{"4711\n", "-1", "0", "99999999999999999999", "", "1 2"} {
		f.Add(text)
	}
	root := f.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "run/libvirt/qemu"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(root, "run/libvirt/qemu/x.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Kind{Root: root}.readPID("qemu", "x")
		if err == nil && d.pid <= 0 {
			t.Errorf("%q is process %d", text, d.pid)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// FuzzFlags: a descriptor's flags are octal digits or not known.
func FuzzFlags(f *testing.F) {
	f.Add("pos:\t0\nflags:\t0100002\nmnt_id:\t24\n")
	f.Add("flags:")
	f.Add("flags:\t-1")
	file := filepath.Join(f.TempDir(), "fdinfo")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if mode, known := modeOf(file); known && (mode < 0 || mode > 3) {
			t.Errorf("%q is mode %d", text, mode)
		}
	})
}
