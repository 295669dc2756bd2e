package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loadWord, as the first argument, makes this program the load of the traces.
const loadWord = "load"

const overwrittenName = "overwritten"

const (
	loadTime    = 300 * time.Millisecond // for each kind of write
	loadStretch = 128                    // writes between two looks at the clocks
	appendMost  = 64 << 20               // the file that is appended to starts again here
	overwritten = 1 << 20                // size of the file that is overwritten: in the processor's cache
)

// A loadKind is one kind of buffered write.
type loadKind struct {
	name  string
	block int
	fresh bool // blocks are appended; else those in the page cache are overwritten
	bound float64
}

// The kinds, with how much more time a write of a traced process may take.
var loadKinds = []loadKind{
	{"64 KiB appended", 64 << 10, true, 0.05},
	{"64 KiB overwritten", 64 << 10, false, 0.05},
	{"4 KiB appended", 4 << 10, true, 0.40},
	{"4 KiB overwritten", 4 << 10, false, 0.40},
}

// loadResult is what a load saw of one kind, ns of a write: the mean of the median
// stretch, so that others on the processor do not count, and the mean of all.
type loadResult struct {
	Elapsed, CPU float64
	Writes       uint64
}

// load writes into files of dir as soon as its input ends, and prints a loadResult for
// each kind. All of it is on one thread and by system calls that Go's scheduler does not
// see, and nothing but the writes is timed.
func load(dir string) error {
	runtime.LockOSThread()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var results []loadResult
	for _, k := range loadKinds {
		r, err := k.run(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		results = append(results, r)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// makeOverwritten makes the file that all loads overwrite: with the same pages in the
// page cache for each.
func makeOverwritten(dir string) error {
	file, err := os.Create(filepath.Join(dir, overwrittenName))
	if err != nil {
		return err
	}
	for range overwritten / (64 << 10) {
		if _, err := file.Write(make([]byte, 64<<10)); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return errors.Join(file.Sync(), file.Close())
}

// run leaves no dirty pages: of the file that is appended to they go with the file, before
// the kernel writes them back. So no limit on dirty pages comes near.
func (k loadKind) run(dir string) (r loadResult, err error) {
	w := writer{block: make([]byte, k.block), most: overwritten}
	name, flags := overwrittenName, os.O_WRONLY
	if k.fresh {
		w.fresh, w.most, name, flags = true, appendMost, "appended", flags|os.O_CREATE|os.O_TRUNC
	}
	file, err := os.OpenFile(filepath.Join(dir, name), flags, 0o600)
	if err != nil {
		return r, err
	}
	defer file.Close()
	w.fd = int(file.Fd())
	for range 2 { // the first warm up
		if _, _, err := w.stretch(); err != nil {
			return r, err
		}
	}
	var elapsed, cpu time.Duration
	var stretches []float64
	for elapsed < loadTime {
		e, c, err := w.stretch()
		if err != nil {
			return r, err
		}
		elapsed, cpu = elapsed+e, cpu+c
		stretches = append(stretches, float64(e)/loadStretch)
	}
	r.Writes = uint64(len(stretches) * loadStretch)
	r.Elapsed, r.CPU = median(stretches), float64(cpu)/float64(r.Writes)
	if k.fresh {
		return r, file.Truncate(0)
	}
	return r, file.Sync()
}

// A writer goes through a file and starts again at its end.
type writer struct {
	fd    int
	block []byte
	at    int64
	most  int64
	fresh bool
}

// stretch does loadStretch writes and returns their time on the clock and the thread's on
// a processor. A file is truncated between stretches only.
func (w *writer) stretch() (elapsed, cpu time.Duration, err error) {
	if w.fresh && w.at+int64(len(w.block))*loadStretch > w.most {
		if err := unix.Ftruncate(w.fd, 0); err != nil {
			return 0, 0, err
		}
		w.at = 0
	}
	var from, to unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &from); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for range loadStretch {
		if err := w.write(); err != nil {
			return 0, 0, err
		}
	}
	elapsed = time.Since(began)
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &to); err != nil {
		return 0, 0, err
	}
	return elapsed, time.Duration(to.Nano() - from.Nano()), nil
}

func (w *writer) write() error {
	if !w.fresh && w.at == w.most {
		w.at = 0
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_PWRITE64, uintptr(w.fd), uintptr(unsafe.Pointer(&w.block[0])), uintptr(len(w.block)), uintptr(w.at), 0, 0)
	if errno != 0 {
		return errno
	}
	if int(n) != len(w.block) {
		return io.ErrShortWrite
	}
	w.at += int64(n)
	return nil
}
