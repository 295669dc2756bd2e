package load

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pipe(t *testing.T) (out, in *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close(); in.Close() })
	return out, in
}

func TestReportDecode(t *testing.T) {
	out, in := pipe(t)
	ticks := []Tick{{At: 1}, {At: 1 << 60, Bytes: 1 << 50, Ops: 12}}
	result := Result{
		Began: 5, Ended: 10, Elapsed: 5, Bytes: 1, Ops: 2, P50: 3, P99: 4, Max: 5 * time.Second, Cached: 6,
		Stalls: []Stall{{At: 7, For: 2 * time.Second}}, Left: Left{Known: true, Dirty: 8, Writeback: 9},
	}
	r := newReporter(in)
	for _, tick := range ticks {
		if err := r.tick(tick); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.result(result), in.Close()); err != nil {
		t.Fatal(err)
	}
	var got []Tick
	back, err := Decode(out, func(tick Tick) { got = append(got, tick) })
	if err != nil || !reflect.DeepEqual(got, ticks) || !reflect.DeepEqual(back, result) {
		t.Errorf("Decode = %+v, %v, with %+v", back, err, got)
	}
}

func TestTicksAllocateNothing(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	m, stop, err := newMeter(t.Context(), Job{Block: 1, For: time.Hour}, newReporter(null))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	at, err := m.start()
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(1000, func() {
		if _, _, err := m.done(at, at+2*tickEvery, 0); err != nil {
			t.Error(err)
		}
		at += 2 * tickEvery
	})
	if n != 0 {
		t.Errorf("an operation with a tick allocates %v times", n)
	}
}

// A reader that does not read loses ticks, and does not stop the load. One that is gone
// ends it.
func TestTicksDoNotWait(t *testing.T) {
	out, in := pipe(t)
	if _, err := unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	r := newReporter(in)
	for i := range 10000 {
		if err := r.tick(Tick{At: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.tick(Tick{}); !errors.Is(err, unix.EPIPE) {
		t.Errorf("a tick that nobody can read: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"":                                   io.ErrUnexpectedEOF,
		`{"tick":{"at_ns":1}}` + "\n":        io.ErrUnexpectedEOF,
		"panic: no\n":                        nil,
		"{}\n":                               nil,
		`{"tick":{"at_ns":"x"}}` + "\n":      nil,
		strings.Repeat(" ", lineMax+1) + "{": nil,
	} {
		if r, err := Decode(strings.NewReader(text), nil); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("Decode(%.40q) = %+v, %v", text, r, err)
		}
	}
}
