package owners

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/inode"
)

// makeFile makes it on a disk, which the folder for temporary files often is not.
func makeFile(t *testing.T) cached {
	t.Helper()
	f, err := os.CreateTemp("/var/tmp", "weir-inode-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) })
	return cached{File: f}
}

func TestFindWindowRefusesWhatHasNoData(t *testing.T) {
	f := makeFile(t)
	for _, size := range []int64{0, 1 << 20} {
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		var refused *inode.Refused
		if _, err := findWindow(t.Context(), f); !errors.As(err, &refused) || !strings.Contains(err.Error(), "has only holes") {
			t.Errorf("%d bytes without data: %v", size, err)
		}
	}
}

// A writer that goes round and round has every page back before long.
func TestFindWindowBesideAWriter(t *testing.T) {
	f := makeFile(t)
	const size = 4 << 20
	block := make([]byte, 64<<10)
	write := func(at int64) {
		if _, err := f.WriteAt(block, at); err != nil {
			t.Error(err)
		}
	}
	for at := int64(0); at < size; at += int64(len(block)) {
		write(at)
	}
	if err := f.letGo(t.Context()); err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < size; at += int64(len(block)) {
		write(at)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for at := int64(0); ; at = (at + int64(len(block))) % size {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				write(at)
			}
		}
	}()
	w, err := findWindow(t.Context(), f)
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.round(), w.Close()); err != nil {
		t.Error(err)
	}
}

// The page found is beyond the hole, and rounds leave the file as it was.
func TestWindow(t *testing.T) {
	f := makeFile(t)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type == unix.TMPFS_MAGIC {
		t.Fatal("/var/tmp is a tmpfs, which has nowhere to let pages go to")
	}
	const begins = 1 << 20
	text := strings.Repeat("weir", 1<<14)
	if _, err := f.WriteAt([]byte(text), begins); err != nil {
		t.Fatal(err)
	}
	if err := f.letGo(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := blocksOf(t, f)
	w, err := findWindow(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.at < begins {
		t.Errorf("the page at %d is in a hole", w.at)
	}
	for range 3 {
		if err := w.round(); err != nil {
			t.Fatal(err)
		}
	}
	if resident, err := w.resident(); err != nil || !resident {
		t.Errorf("after a round: resident %t, %v", resident, err)
	}
	if after := blocksOf(t, f); after != before {
		t.Errorf("%d blocks, %d before", after, before)
	}
	got := make([]byte, len(text))
	if _, err := f.ReadAt(got, begins); err != nil || string(got) != text {
		t.Errorf("the file's bytes have changed (%v)", err)
	}
}

func blocksOf(t *testing.T, f cached) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks
}

// A writer counts up in the very word that is touched; no number may come back.
func TestTouchTakesNothingBack(t *testing.T) {
	f := makeFile(t)
	if _, err := f.Write(make([]byte, os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	w, err := mapWindow(f, 0, int64(os.Getpagesize()))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var stop atomic.Bool
	touched := make(chan error)
	go func() {
		for !stop.Load() {
			if err := w.touch(); err != nil {
				touched <- err
				return
			}
		}
		touched <- nil
	}()
	var wrote, read [4]byte
	for i, end := uint32(1), time.Now().Add(200*time.Millisecond); time.Now().Before(end); i++ {
		binary.LittleEndian.PutUint32(wrote[:], i)
		if _, err := f.WriteAt(wrote[:], 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(read[:], 0); err != nil || read != wrote {
			t.Fatalf("wrote %v, read %v (%v)", wrote, read, err)
		}
	}
	stop.Store(true)
	if err := <-touched; err != nil {
		t.Error(err)
	}
}

func TestTouchOfAFileCutShort(t *testing.T) {
	f := makeFile(t)
	size := int64(os.Getpagesize())
	if err := f.Truncate(2 * size); err != nil {
		t.Fatal(err)
	}
	w, err := mapWindow(f, size, size)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	var refused *inode.Refused
	if err := w.touch(); !errors.As(err, &refused) {
		t.Errorf("touch = %v", err)
	}
}
