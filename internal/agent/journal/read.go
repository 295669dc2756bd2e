package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A Query says which entries are wanted.
type Query struct {
	Target string    // of this target alone; empty: all
	Since  time.Time // not older; zero: all
	Most   int       // the last ones, so many; 0: all
}

// A Log is what a journal has, the oldest entry first.
type Log struct {
	Entries []Entry
	Torn    uint64 // lines that a crash tore, or that are no entries
	Lost    uint64 // entries that could not be written
	LeftOut uint64 // older entries that Query.Most leaves out
}

// turnsMost is how often the files may be exchanged while they are opened: once in thousands of
// entries is normal.
const turnsMost = 10

// Read reads a journal, which may be written meanwhile. One that does not exist has no entries.
func Read(dir string, q Query) (Log, error) {
	var l Log
	files, err := openBoth(dir)
	if err != nil {
		return l, fmt.Errorf("read the journal: %w", err)
	}
	for _, f := range files {
		err = errors.Join(err, l.read(f, q), f.Close())
	}
	if err != nil {
		return l, fmt.Errorf("read the journal: %w", err)
	}
	return l, nil
}

// openBoth opens the older file and the newer one, of one moment.
func openBoth(dir string) (files []*os.File, err error) {
	for range turnsMost {
		files = files[:0]
		now, err := open(filepath.Join(dir, newer))
		if err != nil {
			return nil, err
		}
		before, err := open(filepath.Join(dir, older))
		if err != nil {
			return nil, errors.Join(err, shutAll(now))
		}
		if now == nil {
			// The agent is between two files, or there is only an older one.
			if again, err := open(filepath.Join(dir, newer)); err != nil || again != nil {
				if err := errors.Join(err, shutAll(before, again)); err != nil {
					return nil, err
				}
				continue
			}
		} else if !is(now, filepath.Join(dir, newer)) {
			if err := shutAll(before, now); err != nil {
				return nil, err
			}
			continue
		}
		for _, f := range []*os.File{before, now} {
			if f != nil {
				files = append(files, f)
			}
		}
		return files, nil
	}
	return nil, errors.New("its files are exchanged again and again")
}

// open opens a file; nil: it does not exist.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err == nil && info.Mode().Type() == fs.ModeNamedPipe:
		return nil, f.Close() // it would have to be waited for, and is not the agent's
	case err == nil:
		err = regular(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// regular refuses what is no regular file.
func regular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("it is no regular file; move it away")}
	}
	return err
}

func shutAll(files ...*os.File) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// read adds the entries of a file. A last line without its end is still being written.
func (l *Log) read(f *os.File, q Query) error {
	r := bufio.NewReaderSize(io.LimitReader(f, 2*SizeMost), lineMost)
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull): // no line of ours
			l.Torn++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		e, ok := decode(line[:len(line)-1])
		if !ok {
			l.Torn++
			continue
		}
		l.Lost += e.Lost
		if (q.Target == "" || e.Target == q.Target) && !e.At.Before(q.Since) {
			l.Entries = append(l.Entries, e)
		}
		if drop := len(l.Entries) - q.Most; q.Most > 0 && drop > 0 {
			l.Entries = l.Entries[drop:]
			l.LeftOut += uint64(drop)
		}
	}
}
