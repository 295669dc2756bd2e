package cgroupfs

import (
	"strings"
	"testing"
)

// FuzzMemory: sizes of page cache are of lines that are there, and no part is more than the whole.
func FuzzMemory(f *testing.F) {
	for _, s := range []string{"file_dirty 4096\nfile_writeback 4096\ninactive_file 12288\n", "total_dirty 1\ntotal_active_file 9223372036854775807\n", "file_dirty", "file_dirty -1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "\n") > 1 {
			return // the kernel has each line once: a sum of more than two lines can be too large for a number
		}
		var m Memory
		if err := m.readStat(text); err != nil {
			return
		}
		if m.Writeback > m.Dirty || m.Dirty > 0 && !strings.Contains(text, "_dirty ") && !strings.Contains(text, "_writeback ") || m.Clean > 0 && !strings.Contains(text, "active_file ") {
			t.Errorf("%q: %+v", text, m)
		}
	})
}

// FuzzPressure: a time that tasks waited is never negative, and only there if the text has one.
func FuzzPressure(f *testing.F) {
	for _, s := range []string{"some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull total=9007199254740991\n", "some total=", "full total=-1\n", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePressure(text)
		if p.Some < 0 || p.Full < 0 || err == nil && p.Some+p.Full != 0 && !strings.Contains(text, "total=") {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	})
}
