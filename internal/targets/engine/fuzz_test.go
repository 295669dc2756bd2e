package engine

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
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
		if json.Unmarshal([]byte(text), &c) != nil || !targets.IsContainerID(c.ID) {
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

// FuzzList: names and labels of containers are their makers' own. A name that weir uses can be
// typed, and an id is one.
func FuzzList(f *testing.F) {
	id := strings.Repeat("0a", 32)
	f.Add(`[{"Id":"` + id + `","Names":["/web","/db/link"],"Labels":{"weir.plan":"small"}}]`)
	f.Add(`[{"Id":"` + id + `","Names":["\u001b[2J","//","/-rf"],"Labels":null},{"Id":"x"},null]`)
	f.Fuzz(func(t *testing.T, text string) {
		var containers []listed
		if json.Unmarshal([]byte(text), &containers) != nil {
			return // list ends there
		}
		for _, c := range (Kind{}).named(containers) {
			if !targets.IsContainerID(c.ID) || !isName(c.Name) {
				t.Errorf("%q is called %q", c.ID, c.Name)
			}
			for _, name := range c.Names {
				if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '/' }) {
					t.Errorf("a name %q", name)
				}
			}
		}
	})
}
