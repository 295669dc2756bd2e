package journal

import (
	"hash/crc32"
	"strings"
	"testing"
)

// The checksum is the one that everybody calls CRC-32C.
func TestSum(t *testing.T) {
	for _, text := range []string{"", "123456789", strings.Repeat("\x00\xff", 999)} {
		if got, want := sumOf([]byte(text)), crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)); got != want {
			t.Errorf("%.20q: %08x, want %08x", text, got, want)
		}
	}
}
