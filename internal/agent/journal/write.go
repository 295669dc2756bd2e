package journal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/durable"
)

// The files of a journal. When the newer one is full it takes the place of the older one.
const (
	newer = "changes"
	older = "changes.1"
)

const (
	// SizeMost bounds each of the two files, in bytes: about 15,000 entries.
	SizeMost = 4 << 20
	// queueMost is how many entries wait at most while the disk does not answer.
	queueMost = 4096
	// syncTime is after what time at most an entry is on the disk.
	syncTime = time.Second
	// endMost is how long Run waits at its end for a disk that does not answer.
	endMost = 2 * time.Second

	fileMode = 0o600
	dirMode  = 0o700
)

// A Journal writes entries. Its methods may be called from several goroutines.
type Journal struct {
	dir   string
	log   *slog.Logger
	queue chan *Entry
	most  int64 // bytes of a file

	mu   sync.Mutex
	lost uint64

	// Only Run's goroutine has these.
	file   *os.File
	size   int64
	torn   bool // the file does not end with a newline
	dirty  bool // something is not on the disk yet
	failed string
}

// New makes a Journal in a directory, which is made when the first entry is written.
func New(dir string, log *slog.Logger) *Journal {
	return &Journal{dir: dir, log: log, queue: make(chan *Entry, queueMost), most: SizeMost}
}

// Dir is the directory that it is in.
func (j *Journal) Dir() string { return j.dir }

// Add adds an entry. It never waits: an entry too many is counted, and not written.
func (j *Journal) Add(e Entry) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	one := e.bounded()
	select {
	case j.queue <- &one:
	default:
		j.lose(1)
	}
}

func (j *Journal) lose(n uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost += n
}

// takeLost is how many entries were lost since it was asked last.
func (j *Journal) takeLost() (n uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, j.lost = j.lost, 0
	return n
}

// Run writes entries until the context ends, and then those that wait already. Where the disk does
// not answer, Run returns all the same.
func (j *Journal) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.run(ctx)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(endMost): // it is in a call to the kernel, and ends with the process
		j.log.Warn("the journal's disk does not answer; the last changes are not on record", "directory", j.dir)
	}
}

func (j *Journal) run(ctx context.Context) {
	tick := time.NewTicker(syncTime)
	tick.Stop()
	defer tick.Stop()
	for {
		select {
		case e := <-j.queue:
			if !j.dirty {
				tick.Reset(syncTime)
			}
			j.write(*e)
		case <-tick.C:
			tick.Stop()
			j.sync()
		case <-ctx.Done():
			for len(j.queue) > 0 {
				j.write(*<-j.queue)
			}
			j.shut()
			return
		}
	}
}

// write writes one entry. One that cannot be written is counted.
func (j *Journal) write(e Entry) {
	e.Lost = j.takeLost()
	line, err := encode(e)
	if err == nil {
		err = j.append(line)
	}
	if err != nil {
		j.lose(e.Lost + 1)
	}
	j.tell(err)
}

// tell logs once why the journal cannot be written, until it is something else.
func (j *Journal) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == j.failed {
		return
	}
	if j.failed = text; err != nil {
		j.log.Warn("changes cannot be recorded; weird goes on without", "error", err)
	} else {
		j.log.Info("changes are recorded again", "directory", j.dir)
	}
}

func (j *Journal) append(line []byte) error {
	if err := j.open(); err != nil {
		return err
	}
	if j.size > 0 && j.size+1+int64(len(line)) > j.most {
		if err := j.turn(); err != nil {
			return err
		}
	}
	if j.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := j.file.Write(line)
	j.size += int64(n)
	if n > 0 {
		j.dirty, j.torn = true, n < len(line)
	}
	return err
}

// open opens the newer file, if that is not open already or was exchanged meanwhile.
func (j *Journal) open() error {
	path := filepath.Join(j.dir, newer)
	if j.file != nil {
		if is(j.file, path) {
			return nil
		}
		j.shut()
	}
	if err := os.MkdirAll(j.dir, dirMode); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, fileMode)
	if err != nil {
		return err
	}
	size, torn := int64(0), false
	if err = regular(f); err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err == nil && size > 0 {
		last := make([]byte, 1)
		_, err = f.ReadAt(last, size-1)
		torn = last[0] != '\n'
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.file, j.size, j.torn = f, size, torn
	return nil
}

// is reports whether a path leads to an open file.
func is(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	at, err := os.Lstat(path)
	return err == nil && os.SameFile(own, at)
}

// turn puts the newer file into the place of the older one, and begins another.
func (j *Journal) turn() error {
	j.sync()
	if err := os.Rename(filepath.Join(j.dir, newer), filepath.Join(j.dir, older)); err != nil {
		return err
	}
	j.shut()
	if err := j.open(); err != nil {
		return err
	}
	return durable.Sync(j.dir)
}

// sync has the disk take what is written.
func (j *Journal) sync() {
	if j.file != nil && j.dirty {
		j.tell(unix.Fdatasync(int(j.file.Fd())))
	}
	j.dirty = false
}

func (j *Journal) shut() {
	j.sync()
	if j.file != nil {
		_ = j.file.Close() // nothing waits to be written
	}
	j.file = nil
}
