package load

import "encoding/binary"

// What a block is filled with: nothing that a file system or a disk could compress,
// and no page the same as another.

const pageBytes = 4096

// fill writes numbers of splitmix64 into b.
func fill(b []byte) {
	for x := uint64(0); len(b) >= 8; b = b[8:] {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(b, z^z>>31)
	}
}

// stamp makes the block's pages differ from those of every other operation.
func stamp(b []byte, n uint64) {
	for ; len(b) >= pageBytes; b = b[pageBytes:] {
		binary.LittleEndian.PutUint64(b, n)
	}
	if len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, n)
	}
}
