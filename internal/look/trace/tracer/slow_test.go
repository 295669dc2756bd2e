package tracer

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/trace"
)

func sample(t *testing.T, e slowEvent) []byte {
	t.Helper()
	b, err := binary.Append(nil, binary.NativeEndian, e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheSlowestAreKept(t *testing.T) {
	w := &SlowWatch{paths: newPaths()}
	const all = 3 * slowMost
	for i := range all {
		w.add(sample(t, slowEvent{Began: uint64(i), Took: uint64(i * 7919 % all)})) // in no order
	}
	w.add([]byte("short"))
	if w.err != nil || w.count != all || len(w.kept) != slowMost {
		t.Fatalf("%d of %d are kept, %v", len(w.kept), w.count, w.err)
	}
	var took []uint64
	for _, s := range w.kept {
		took = append(took, s.Took)
	}
	slices.Sort(took)
	if took[0] != all-slowMost || took[slowMost-1] != all-1 {
		t.Errorf("%d to %d ns are kept, want the slowest", took[0], took[slowMost-1])
	}
}

func TestSlow(t *testing.T) {
	e := slowEvent{Began: 5e9, Took: 3e6, Bytes: 4096, Inode: 12, Device: 254<<20 | 17, TID: 43, TGID: 42, Kind: uint32(trace.Read)}
	e.Parts[trace.DeviceTime], e.Parts[trace.CPU] = 2.5e6, 0.5e6
	copy(e.Comm[:], "postgres")
	s := e.slow("/data/x", 4.5e9)
	if s.After != 500*time.Millisecond || s.Kind != trace.Read || s.PID != 42 || s.TID != 43 || s.Process != "postgres" || s.File != "/data/x" || s.Device.String() != "254:17" ||
		s.Inode != 12 || s.Bytes != 4096 || s.Took != 3*time.Millisecond || s.Cause() != trace.DeviceTime || s.Split != e.Parts {
		t.Errorf("%+v", s)
	}
	if s := e.slow("", 6e9); s.After != 0 {
		t.Errorf("an operation that was under way began after %s", s.After)
	}
}

func TestMonotonic(t *testing.T) {
	before := monotonic()
	began := time.Now()
	for time.Since(began) < 2*time.Millisecond {
	}
	if passed := monotonic() - before; passed < 2e6 || passed > 60e9 {
		t.Errorf("%d ns have passed, want 2 ms", passed)
	}
}

func TestFile(t *testing.T) {
	sum := fileSum{Count: 3, Bytes: 300, Most: 4e6}
	sum.Parts[trace.Journal], sum.Parts[trace.CPU] = 5e6, 1e6
	f := fileKey{Inode: 9, Device: 8<<20 | 1, Kind: uint32(trace.Fsync)}.file(&sum, "/x")
	if f.File != "/x" || f.Device.String() != "8:1" || f.Inode != 9 || f.Kind != trace.Fsync || f.Count != 3 || f.Bytes != 300 ||
		f.Sum() != 6*time.Millisecond || f.Max != 4*time.Millisecond || f.Cause() != trace.Journal || f.Split != sum.Parts {
		t.Errorf("%+v", f)
	}
}
