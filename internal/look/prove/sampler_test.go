package prove

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// What is charged to groups beside the one that is looked at is others', also to those
// that are made meanwhile, and to those that have gone.
func TestSiblings(t *testing.T) {
	stat := func(written int) string {
		return fmt.Sprintf("8:0 rbytes=0 wbytes=%d rios=0 wios=1 dbytes=0 dios=0\n", written)
	}
	name := func(group string) string { return cgrouptest.V2Dir + group + "/io.stat" }
	host := cgrouptest.New(t, cgroupfs.V2, map[string]string{name("/a/x"): stat(1), name("/a/y"): stat(20), name("/b"): stat(300)})
	s, err := siblingsOf(host.Group("/a/x"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, bytes, ops uint64) {
		t.Helper()
		got, err := s.read(blkdev.Number{Major: 8}, false)
		if err != nil || got != (counts{bytes, ops}) {
			t.Errorf("%s: %+v, %v; want %d bytes, %d operations", when, got, err, bytes, ops)
		}
	}
	check("at first", 320, 2)
	host.Write(name("/a/new"), stat(4000))
	check("with a new one", 4320, 3)
	if err := os.RemoveAll(filepath.Join(host.Root, cgrouptest.V2Dir, "b")); err != nil {
		t.Fatal(err)
	}
	check("after one has gone", 4320, 3)
}
