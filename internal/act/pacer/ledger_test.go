package pacer

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Each byte is paid for once: here, or in the kernel's throttle.
func TestLedger(t *testing.T) {
	const mb, least = 1e6, 0.5e6 // of 10 MB/s
	type entry struct {
		at               time.Duration
		written, charged float64
		owes, taken      float64
		wants            bool
		begins           bool
		ends             bool
		waits            float64
	}
	for name, entries := range map[string][]entry{
		"direct":                  {{written: mb, charged: mb, taken: mb}},
		"buffered":                {{written: mb, owes: mb}},
		"dirtied, and synced":     {{written: 50 * mb, owes: 50 * mb}, {charged: 50 * mb, wants: true, begins: true, waits: 50 * mb}, {ends: true}},
		"synced in pieces":        {{written: 50 * mb, owes: 50 * mb}, {charged: 0.3 * mb}, {charged: 0.3 * mb, wants: true, begins: true, waits: 0.6 * mb}, {charged: mb}, {ends: true}},
		"a commit":                {{written: 0.1 * mb, owes: 0.1 * mb}, {at: time.Second, charged: 0.1 * mb}, {at: 2 * time.Second, charged: 0.1 * mb, taken: 0.1 * mb}},
		"commits, each paid for":  {{written: 0.4 * mb, owes: 0.4 * mb}, {charged: 0.4 * mb}, {at: time.Second, written: 0.4 * mb, owes: 0.4 * mb}, {at: time.Second, charged: 0.4 * mb}},
		"dirtied by others":       {{charged: mb, taken: mb}},
		"charged before counted":  {{charged: mb, taken: mb}, {written: mb}, {written: mb, owes: mb}},
		"direct in a loan":        {{written: 10 * mb, owes: 10 * mb}, {charged: 10 * mb, wants: true, begins: true, waits: 13 * mb}, {written: 5 * mb, charged: 5 * mb, owes: 5 * mb}, {ends: true, owes: 3 * mb}, {at: strictFor - 1, written: 0.4 * mb, charged: 0.4 * mb, owes: 0.4 * mb}, {at: strictFor, written: 0.4 * mb, charged: 0.4 * mb, taken: 0.4 * mb}},
		"written back by others":  {{written: 10 * mb, owes: 10 * mb}, {at: 21 * time.Second}, {at: 42 * time.Second, charged: 10 * mb, taken: 10 * mb}},
		"cut off":                 {{written: -mb, charged: 1000, owes: -mb, taken: 1000}},
		"a loan that is late":     {{written: 50 * mb, owes: 50 * mb}, {charged: 50 * mb, wants: true}, {at: 4 * time.Second, wants: true, begins: true, waits: 10 * mb}, {at: 4 * time.Second, ends: true}},
		"a loan that never comes": {{written: 50 * mb, owes: 50 * mb}, {charged: 50 * mb, wants: true}, {at: 5 * time.Second}},
		"synced while it dirties": {{written: 10 * mb, owes: 10 * mb}, {written: 2 * mb, charged: 12 * mb, taken: 2 * mb, wants: true}},
	} {
		var l ledger
		for i, e := range entries {
			unpaid := 0.0
			if e.ends {
				unpaid = l.end(e.at)
			}
			owes, taken := l.enter(e.written, e.charged, least, e.at)
			owes += unpaid
			if owes != e.owes || taken != e.taken || l.wants() != e.wants {
				t.Errorf("%s, entry %d: owes %.0f, taken %.0f, wants a loan: %v; want %+v", name, i, owes, taken, l.wants(), e)
			}
			if e.begins {
				l.begin(e.waits)
			}
			if e.ends && l.asked+l.unpaid > 0 {
				t.Errorf("%s, entry %d: %+v", name, i, l)
			}
		}
	}
}

// What waits at a rule goes through at its rate.
func TestGate(t *testing.T) {
	g := gate{rate: 1e6}
	if more := g.charge(3e6, 0); more != 3e6 || g.waits != 3e6 {
		t.Errorf("%.0f more, %.0f wait", more, g.waits)
	}
	if more := g.charge(4e6, time.Second); more != 1e6 || g.waits != 3e6 {
		t.Errorf("%.0f more, %.0f wait", more, g.waits)
	}
	if g.charge(4e6, time.Minute); g.waits != 0 {
		t.Errorf("%.0f wait", g.waits)
	}
}

// What others hold to the rate takes what the bucket has, and stops nobody.
func TestShare(t *testing.T) {
	for level, want := range map[float64]float64{5: 2, 2: 0, 0: 0, -1: -4} {
		b := bucket{level: level}
		if b.share(3); b.level != want {
			t.Errorf("of %.0f 3 leave %.0f, want %.0f", level, b.level, want)
		}
	}
}

// What is written directly to a volume passes two gates, the volume's and its disk's, and is charged once.
func TestGatesOnEachOther(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	disk, volume := blkdev.Number{Major: 8}, blkdev.Number{Major: 253}
	for file, text := range map[string]string{"class/block/sda/dev": "8:0", "class/block/sda/size": "1", "dev/block/8:0/dev": "8:0", "dev/block/8:0/size": "1",
		"dev/block/253:0/dev": "253:0", "dev/block/253:0/size": "1", "dev/block/253:0/slaves/sda": ""} {
		h.Write("sys/"+file, text+"\n")
	}
	made, err := h.server().newMeter(Job{Devices: []blkdev.Number{disk, volume}, WBPS: 1e6}, h.Group("/a"))
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	m := made.(*written)
	for i, c := range []struct {
		onDisk, onVolume int
		more             float64
	}{
		{9e6, 9e6, 0}, // before
		{12e6, 12e6, 3e6},
		{12e6, 14e6, 2e6}, // waits at the volume's
		{14e6, 14e6, 0},   // and at the disk's
		{15e6, 14e6, 1e6}, // past the volume
		{15e6, 16e6, 2e6},
		{17e6, 16e6, 0},
	} {
		h.Write(h.trees[0]+"/a/blkio.throttle.io_service_bytes", fmt.Sprintf("8:0 Write %d\n8:0 Total %[1]d\n253:0 Write %d\n253:0 Total %[2]d\nTotal %d\n", c.onDisk, c.onVolume, c.onDisk+c.onVolume))
		if more, err := m.charge(0); err != nil || more != c.more {
			t.Errorf("look %d: %.0f bytes, %v; want %.0f", i, more, err, c.more)
		}
	}
	if m.gates[disk].waits != 8e6 || m.gates[volume].waits != 7e6 {
		t.Errorf("at the gates wait %.0f and %.0f", m.gates[disk].waits, m.gates[volume].waits)
	}
	m.on(Job{Devices: []blkdev.Number{disk}, WBPS: 1e6}) // the volume is let go
	if more, err := m.charge(0); err != nil || more != 0 {
		t.Errorf("with the disk alone: %.0f bytes more, %v", more, err)
	}
	m.on(Job{Devices: []blkdev.Number{disk, volume}, WBPS: 1e6}) // and comes back, with all that it ever had
	if more, err := m.charge(0); err != nil || more != 0 || m.gates[volume].waits != 0 {
		t.Errorf("with the volume again: %.0f bytes more, %.0f wait, %v", more, m.gates[volume].waits, err)
	}
	h.Write(h.trees[0]+"/a/blkio.throttle.io_service_bytes", "8:0 Write 18000000\n8:0 Total 18000000\n253:0 Write 16000000\n253:0 Total 16000000\nTotal 34000000\n")
	if more, err := m.charge(0); err != nil || more != 1e6 {
		t.Errorf("past the volume again: %.0f bytes more, %v; want 1000000", more, err)
	}
}
