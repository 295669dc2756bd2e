package cgroupfs

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// directories returns the names of the directories in a buffer that getdents64(2)
// filled. The type comes with the entry (cgroupfs always gives it), so a listing
// costs no stat for each of a group's thirty files.
func directories(buf []byte) []string {
	const header = 19 // d_ino 8, d_off 8, d_reclen 2, d_type 1
	var names []string
	for len(buf) >= header {
		size := int(binary.NativeEndian.Uint16(buf[16:]))
		if size < header || size > len(buf) {
			break
		}
		name, _, _ := bytes.Cut(buf[header:size], []byte{0})
		if buf[18] == unix.DT_DIR && string(name) != "." && string(name) != ".." {
			names = append(names, string(name))
		}
		buf = buf[size:]
	}
	return names
}
