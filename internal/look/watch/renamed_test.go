package watch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// A v1 group can be renamed, and another one made in its place: that one's figures are its own, after
// IdleEvery at most.
func TestAGroupThatTookAName(t *testing.T) {
	dir := cgrouptest.V1Dir
	group := func(w *watched, name, bytes string) {
		const throttle = "/blkio.throttle."
		for file, text := range map[string]string{"io_service_bytes": "8:0 Read 0\n8:0 Write " + bytes + "\n8:0 Total " + bytes + "\nTotal " + bytes + "\n",
			"io_serviced": "8:0 Read 0\n8:0 Write 1\n8:0 Total 1\nTotal 1\n", "read_bps_device": "", "write_bps_device": "", "read_iops_device": "", "write_iops_device": ""} {
			w.h.Write(filepath.Join(dir, name)+throttle+file, text)
		}
	}
	w := watching(t, cgroupfs.V1, map[string]string{})
	group(w, ".", "200") // the root
	group(w, "a", "100")
	s := w.sample(0)
	if a := s.group("/a"); a == nil || a.Devices[0].Total.WrittenBytes != 100 {
		t.Fatalf("%+v", s)
	}
	if err := os.Rename(filepath.Join(w.h.Root, dir, "a"), filepath.Join(w.h.Root, dir, "b")); err != nil {
		t.Fatal(err)
	}
	group(w, "a", "7")
	s = w.sample(IdleEvery)
	if a, b := s.group("/a"), s.group("/b"); a == nil || b == nil || a.Devices[0].Total.WrittenBytes != 7 || a.Devices[0].Rates != nil || b.Devices[0].Total.WrittenBytes != 100 {
		t.Errorf("%+v, %+v", a, b)
	}
}
