package watcher

import (
	"testing"
	"unsafe"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// What the program writes is what is read.
func TestLayout(t *testing.T) {
	spec, err := loadEscape()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]uintptr{
		escapeMapGroups: {8, unsafe.Sizeof(counted{})},
		escapeMapSums:   {unsafe.Sizeof(sumKey{}), 8},
		escapeMapFiles:  {unsafe.Sizeof(fileKey{}), unsafe.Sizeof(escapedRecord{})},
	} {
		m := spec.Maps[name]
		if got := [2]uintptr{uintptr(m.KeySize), uintptr(m.ValueSize)}; got != want {
			t.Errorf("map %s has keys and values of %v bytes, read as %v", name, got, want)
		}
	}
}

// A file is called what it is called where its file system is mounted whole, if it is.
func TestPathOf(t *testing.T) {
	disk, other := blkdev.Number{Major: 8, Minor: 1}, blkdev.Number{Major: 8, Minor: 2}
	mounts := []blkdev.Mount{
		{Number: other, Root: "/", Point: "/"},
		{Number: disk, Root: "/a", Point: "/bound"},
		{Number: disk, Root: "/", Point: "/srv"},
	}
	for _, c := range []struct {
		names []string
		cut   bool
		on    blkdev.Number
		want  string
	}{
		{[]string{"a", "f"}, false, disk, "/srv/a/f"},
		{[]string{"a", "f"}, false, other, "/a/f"},
		{[]string{"a", "f"}, true, disk, ".../a/f"},
		{[]string{"f"}, false, blkdev.Number{Minor: 40}, "/f"},
	} {
		if got := pathOf(c.names, c.cut, c.on, mounts); got != c.want {
			t.Errorf("pathOf(%v, %v, %v) = %q, want %q", c.names, c.cut, c.on, got, c.want)
		}
	}
	if got := pathOf([]string{"a", "f"}, false, disk, mounts[:2]); got != "/bound/f" {
		t.Errorf("of a bound directory: %q", got)
	}
	if got := pathOf([]string{"b", "f"}, false, disk, mounts[:2]); got != "/b/f" {
		t.Errorf("beside a bound directory: %q", got)
	}
}
