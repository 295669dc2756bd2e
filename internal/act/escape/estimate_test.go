package escape

import (
	"testing"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// What is ahead is no credit, and a look in the middle of a write is no escape.
func TestJudge(t *testing.T) {
	disk := blkdev.Number{Major: 8}
	reading := func(before, after, wet, dirty, charged uint64) Reading {
		return Reading{Written: after, Dirty: dirty, Stats: []cgroupfs.Stat{{Device: disk, WrittenBytes: charged}},
			before: process.IO{WriteBytes: before}, wet: wet}
	}
	for name, c := range map[string]struct {
		looks []Reading
		want  uint64
	}{
		"its own, in memory":              {[]Reading{reading(100, 100, 100, 100, 0), reading(100, 100, 0, 0, 100)}, 0},
		"written on between two readings": {[]Reading{reading(100, 180, 140, 170, 0), reading(180, 180, 0, 0, 180)}, 0},
		"written back between them":       {[]Reading{reading(100, 100, 100, 20, 80), reading(100, 100, 0, 0, 100)}, 0},
		"past":                            {[]Reading{reading(100, 100, 0, 0, 0)}, 100},
		"past, after pages of before":     {[]Reading{reading(0, 0, 0, 0, 50), reading(100, 100, 0, 0, 50)}, 100},
		"both":                            {[]Reading{reading(100, 100, 40, 40, 0), reading(150, 150, 0, 0, 80)}, 70},
		"a disk that is slow":             {[]Reading{{Written: 100, Dirty: 80, wet: 80, Underway: 60, before: process.IO{WriteBytes: 100}, Stats: []cgroupfs.Stat{{Device: disk, WrittenBytes: 60}}}, reading(100, 100, 0, 0, 100)}, 0},
	} {
		e := Estimate{devices: []blkdev.Number{disk}}
		var got uint64
		for _, r := range c.looks {
			got = e.judge(r)
		}
		if got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// What goes through a volume is charged to the volume and to its disk, and was written once.
func TestAVolumeAndItsDisk(t *testing.T) {
	disk, volume := blkdev.Number{Major: 8}, blkdev.Number{Major: 253}
	upon := blkdev.Upon{disk: {volume}}
	charged := func(onDisk, onVolume uint64) []cgroupfs.Stat {
		return []cgroupfs.Stat{{Device: disk, WrittenBytes: onDisk}, {Device: volume, WrittenBytes: onVolume}}
	}
	e := Estimate{devices: []blkdev.Number{disk, volume}, upon: upon}
	if got := e.judge(Reading{Written: 200, before: process.IO{WriteBytes: 200}, Stats: charged(100, 100)}); got != 100 {
		t.Errorf("%d bytes escaped, want 100", got)
	}
	m := Meter{devices: e.devices, upon: upon, own: map[blkdev.Number]uint64{}}
	for _, c := range []struct{ onDisk, onVolume, want uint64 }{
		{100, 100, 100},
		{150, 100, 150}, // directly
		{150, 140, 190}, // waits for the volume's limit
		{190, 140, 190}, // and is through
	} {
		if m.charge(charged(c.onDisk, c.onVolume)); m.charged != c.want {
			t.Errorf("%+v: %d bytes", c, m.charged)
		}
	}
}
