package mountinfo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, paths ...string) *Watch {
	t.Helper()
	w, err := Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *Watch) points(t *testing.T) (all []string) {
	t.Helper()
	if err := w.Read(func(i Info) bool { all = append(all, i.Point); return false }); err != nil {
		t.Fatal(err)
	}
	return all
}

// A mount ends the wait, once, and is in the list that is read after that. So is the end of the mount.
func TestWaitForMounts(t *testing.T) {
	runtime.LockOSThread() // for good: its mounts are its own
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		runtime.UnlockOSThread()
		t.Skipf("only root may have mounts of its own: %v", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	w := open(t, "/proc/thread-self/none", "/proc/thread-self/mountinfo", "/proc/thread-self/mountinfo")
	waits := func(want bool, most time.Duration) {
		t.Helper()
		if changed, err := w.Wait(t.Context(), most); err != nil || changed != want {
			t.Errorf("changed %v, %v", changed, err)
		}
	}
	waits(false, 20*time.Millisecond)
	if err := unix.Mount("weir", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	waits(true, 10*time.Second)
	if !slices.Contains(w.points(t), dir) {
		t.Errorf("%s is not in the list", dir)
	}
	waits(false, 20*time.Millisecond)
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	waits(true, 10*time.Second)
	if slices.Contains(w.points(t), dir) {
		t.Errorf("%s is still in the list", dir)
	}
}

// A wait ends with its context, also one that begins after that, and leaves nothing behind: the next one takes no time of
// a processor.
func TestWaitEnds(t *testing.T) {
	w := open(t, "/proc/self/mountinfo")
	for range 3 {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
		var err error
		for err == nil { // others may mount something
			_, err = w.Wait(ctx, time.Minute)
		}
		if !errors.Is(err, why) {
			t.Error(err)
		}
		if _, err := w.Wait(ctx, time.Minute); !errors.Is(err, why) {
			t.Error(err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	before, began := spent(), time.Now()
	for changed := true; changed; {
		var err error
		if changed, err = w.Wait(t.Context(), 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if took := spent() - before; took > 50*time.Millisecond || time.Since(began) < 300*time.Millisecond {
		t.Errorf("a wait of %v takes %v of a processor", time.Since(began), took)
	}
}

// Of a copy of a list nobody tells: it may have changed after each wait.
func TestWaitForACopy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mountinfo")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("21 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
	w := open(t, file)
	write("21 1 254:1 / / rw - ext4 /dev/vda1 rw\n22 21 254:16 / /data rw - xfs /dev/vdb rw\n")
	if changed, err := w.Wait(t.Context(), time.Millisecond); !changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	for range 2 {
		if got := w.points(t); !slices.Equal(got, []string{"/", "/data"}) {
			t.Errorf("%q", got)
		}
	}
	if _, err := Open(file + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
