package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// Groups of v1 are only counted if none is gone. One that came while another went is seen at once,
// as is one that came or went alone, and what one of them has below it.
func TestSampleV1Counts(t *testing.T) {
	const bytesFile, opsFile = "blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"
	w := watching(t, cgroupfs.V1, nil)
	w.o.Keep = 1 // files of copies that were removed can still be read
	w.start()
	write := func(group string, n int) {
		for _, file := range []string{bytesFile, opsFile} {
			w.h.Write(filepath.Join(cgrouptest.V1Dir, group, file), lineV1(n))
		}
	}
	remove := func(group string) {
		if err := os.RemoveAll(filepath.Join(w.h.Root, cgrouptest.V1Dir, group)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(step string, want ...string) {
		t.Helper()
		var got []string
		for _, g := range w.sample(time.Second).Groups {
			got = append(got, fmt.Sprint(g.Path, " ", g.Devices[0].Total.WrittenBytes))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	for _, group := range []string{"", "s", "s/a", "s/b", "s/b/c"} {
		write(group, 1)
	}
	check("first", "/ 1", "/s 1", "/s/a 1", "/s/b 1", "/s/b/c 1")
	check("again", "/ 1", "/s 1", "/s/a 1", "/s/b 1", "/s/b/c 1")
	write("s/b/c", 2)
	check("one writes", "/ 1", "/s 1", "/s/a 1", "/s/b 1", "/s/b/c 2")
	remove("s/a")
	write("s/d", 3)
	check("one in the place of another", "/ 1", "/s 1", "/s/b 1", "/s/b/c 2", "/s/d 3")
	write("s/e", 4)
	check("one more", "/ 1", "/s 1", "/s/b 1", "/s/b/c 2", "/s/d 3", "/s/e 4")
	remove("s/b")
	check("one less, with one below", "/ 1", "/s 1", "/s/d 3", "/s/e 4")
	remove("s/d")
	remove("s/e")
	write("s/f", 5)
	write("s/f/g", 6)
	write("s/h", 7)
	check("all are others", "/ 1", "/s 1", "/s/f 5", "/s/f/g 6", "/s/h 7")
}
