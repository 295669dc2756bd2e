package watch_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/lab"
)

// resetsVariable says how often TestHistoryAfterAReset has its guest reset.
const resetsVariable = "WEIR_HISTORY_RESETS"

// History opens after a reset of the machine that records, with what it says is kept, and recording
// goes on: on ext4 and XFS, each time at a random moment. The guest's process is killed from outside,
// with all that had not been written to its disks.
func TestHistoryAfterAReset(t *testing.T) {
	lab.Need(t, lab.Resettable, lab.Guest, lab.Root, lab.FS("ext4"), lab.FS("xfs"))
	resets := lab.Times(t, resetsVariable, 3)
	kinds := []string{"ext4", "xfs"}
	kept := openLedger(t, lab.RawDisk(t).Node, len(kinds))
	n := lab.Resets(t)
	var all []*recording
	for i, kind := range kinds {
		r := &recording{disk: lab.Disk(t, lab.FS(kind)), ledger: kept, at: i}
		all = append(all, r)
		if r.tallies = kept.read(t, i); n > 0 {
			r.look(t, n)
		}
		if n == resets {
			t.Logf("%s: %d resets, %d seconds recorded, %d lost, at most %d at once", kind, n, r.told, r.lost, r.most)
		}
	}
	if n == resets {
		return
	}
	ended := make(chan error, len(all))
	for _, r := range all {
		begun := make(chan struct{})
		go func() { ended <- r.record(begun) }()
		select {
		case <-begun:
		case err := <-ended:
			t.Fatal(err)
		}
	}
	lab.Reset(t, 500*time.Millisecond)
	select {
	case err := <-ended:
		t.Fatalf("recording ended: %v", err)
	case <-time.After(lab.Patience(t, time.Minute)):
		t.Fatal("the guest was not reset")
	}
}

// tallies are what is known of a recording over all resets, in seconds of history.
type tallies struct {
	first uint64 // of this boot
	told  uint64 // the last that was kept
	lost  uint64 // by all resets
	most  uint64 // by one
}

// A recording is on one file system.
type recording struct {
	disk   *lab.TestDisk
	ledger *ledger
	at     int // its place in the ledger
	tallies
}

// look compares what is left after a reset with what was kept before it.
func (r *recording) look(t *testing.T, n int) {
	t.Helper()
	if r.told == 0 {
		t.Fatalf("reset %d: nothing was recorded", n)
	}
	for _, l := range powerLevels() {
		last := lastOf(t, r.disk, l)
		if want := promised(l, int(r.first), int(r.told)); last < want {
			t.Fatalf("reset %d of %s: seconds from %d to %d were kept, and level %s ends at %d instead of %d", n, r.disk.FS, r.first, r.told, l.Step, last, want)
		}
		if l.Step == time.Second {
			lost := max(r.told, uint64(last)) - uint64(last)
			r.lost, r.most = r.lost+lost, max(r.most, lost)
			r.told = max(r.told, uint64(last))
		}
	}
}

// record records seconds until the guest is reset, and notes each in the ledger.
func (r *recording) record(begun chan<- struct{}) error {
	h, err := history.Record(filepath.Join(r.disk.Dir, "history"), powerLevels())
	if err != nil {
		return err
	}
	if r.first = 1; r.told > 0 {
		r.first = r.told + 2
	}
	for n := r.first; n < math.MaxInt32; n++ {
		if err := h.Add(second(int(n))); err != nil {
			return err
		}
		r.told = n
		if err := r.ledger.write(r.at, r.tallies); err != nil {
			return err
		}
		if n == r.first {
			close(begun)
		}
	}
	return h.Close()
}

// A ledger is a disk on which tallies are noted past the page cache: what was noted is there after a
// reset.
type ledger struct {
	disk   *os.File
	blocks [][]byte // of memory that is aligned for direct I/O
}

const ledgerBlock = 4096

func openLedger(t *testing.T, node string, recordings int) *ledger {
	t.Helper()
	f, err := os.OpenFile(node, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	l := &ledger{disk: f}
	for range recordings { // they are this process's until it ends
		block, err := unix.Mmap(-1, 0, ledgerBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		l.blocks = append(l.blocks, block)
	}
	return l
}

func (l *ledger) read(t *testing.T, at int) (s tallies) {
	t.Helper()
	if _, err := l.disk.ReadAt(l.blocks[at], int64(at)*ledgerBlock); err != nil {
		t.Fatal(err)
	}
	for i, v := range []*uint64{&s.first, &s.told, &s.lost, &s.most} {
		*v = binary.LittleEndian.Uint64(l.blocks[at][8*i:])
	}
	return s
}

func (l *ledger) write(at int, s tallies) error {
	for i, v := range []uint64{s.first, s.told, s.lost, s.most} {
		binary.LittleEndian.PutUint64(l.blocks[at][8*i:], v)
	}
	_, err := l.disk.WriteAt(l.blocks[at], int64(at)*ledgerBlock)
	return err
}
