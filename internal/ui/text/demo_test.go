package text

import (
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/demo"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

func TestDemo(t *testing.T) {
	lab.Unit(t)
	ten := limit.PerSecond(10e6)
	want := "WRITES                    LIMIT     WRITER       DISK\n" +
		"direct                     none   136 MB/s   135 MB/s\n" +
		"direct                  10 MB/s  10.0 MB/s  10.0 MB/s  held\n" +
		"buffered                10 MB/s  4.14 GB/s   830 MB/s  NOT HELD: it is v1\n" +
		"buffered, weir's pacer  10 MB/s  10.0 MB/s  1.00 MB/s  cannot tell: the disk is slow\n"
	got := Demo([]demo.Row{
		{Path: load.Direct, Limit: limit.Unlimited, Writer: 136e6, Device: 135e6},
		{Path: load.Direct, Limit: ten, Writer: 10e6, Device: 10e6, Held: true},
		{Path: load.Buffered, Limit: ten, Writer: 4.14e9, Device: 830e6, Why: "it is v1"},
		{Path: load.Buffered, Limit: ten, Hold: limit.HoldPacer, Writer: 10e6, Device: 1e6, CannotTell: true, Why: "the disk is slow"},
	})
	if got != want {
		t.Errorf("\n%s---want\n%s", got, want)
	}
}
