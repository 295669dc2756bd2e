package engine

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/target"
)

// FuzzContainer reads what an engine says of a container, whose paths its maker has chosen:
// what is shown of them is short and printable.
func FuzzContainer(f *testing.F) {
	f.Add(`{"Id":"` + strings.Repeat("0a", 32) + `","State":{"Status":"running","Pid":1},"HostConfig":{"BlkioDeviceWriteBps":[{"Path":"/dev/sda","Rate":5}]}}`)
	f.Add(`{"HostConfig":{"BlkioDeviceReadBps":[{"Path":"../../etc\n","Rate":18446744073709551615},{"Path":"\u0000"}],"BlkioDeviceReadIOps":null}}`)
	f.Add(`{"HostConfig":{"BlkioDeviceReadBps":[{"Rate":-1}]}}`)
	f.Add(`[]`)
	devices := blkdev.New(f.TempDir())
	f.Fuzz(func(t *testing.T, text string) {
		var c container
		if json.Unmarshal([]byte(text), &c) != nil || !target.IsContainerID(c.ID) {
			return // inspect ends there
		}
		r := c.record(t.Context(), devices, Maker{})
		if n := len(c.HostConfig.BlkioDeviceReadBps) + len(c.HostConfig.BlkioDeviceWriteBps) + len(c.HostConfig.BlkioDeviceReadIOps) + len(c.HostConfig.BlkioDeviceWriteIOps); len(r.Limits) > n {
			t.Errorf("%d limits of %d", len(r.Limits), n)
		}
		for _, l := range r.Limits {
			if len(l.Path) > 2*plainMost || strings.ContainsFunc(l.Path, unicode.IsControl) || !l.Limit.Bounds() {
				t.Errorf("%q: %v", l.Path, l.Limit)
			}
		}
	})
}
