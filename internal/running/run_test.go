package running

import (
	"strings"
	"testing"
)

// A dd whose blocks may be cut short is told apart from one that fills them.
func TestReadsShort(t *testing.T) {
	for command, want := range map[string]bool{
		"dd if=/dev/zero of=f bs=1M count=100":                   true,
		"/bin/dd of=f if=/dev/urandom":                           true,
		"dd if=/dev/zero of=f bs=1M iflag=fullblock":             false,
		"dd if=/dev/zero of=f bs=1M iflag=count_bytes,fullblock": false,
		"dd if=file of=f bs=1M":                                  false,
		"cp /dev/zero f":                                         false,
		"sh":                                                     false,
	} {
		if got := readsShort(strings.Fields(command)); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
