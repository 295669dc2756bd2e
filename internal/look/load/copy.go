package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Copy is a file that is written once from beginning to end, as cp(1) does, with the time of
// each write(2) kept in a Log. The data is made in memory, of bytes that neither compress nor
// repeat, because reading a source would take page cache of its own. The file has no name, and
// vanishes with its last process.
type Copy struct {
	Dir    string // where the file is made
	Block  int    // bytes of a write
	Size   int64  // bytes in all; what is left of them beyond whole blocks is not written
	Direct bool   // O_DIRECT; else through the page cache, and nothing is synced
}

// Writes is how many there are.
func (c Copy) Writes() int { return int(c.Size / int64(c.Block)) }

// Args spells a copy as arguments for a process that parses them with ParseCopy.
func (c Copy) Args() []string {
	return []string{"dir=" + c.Dir, "block=" + strconv.Itoa(c.Block), "size=" + strconv.FormatInt(c.Size, 10), "direct=" + strconv.FormatBool(c.Direct)}
}

// ParseCopy reads what Args wrote.
func ParseCopy(args []string) (c Copy, err error) {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "dir":
			c.Dir = value
		case "block":
			c.Block, err = strconv.Atoi(value)
		case "size":
			c.Size, err = strconv.ParseInt(value, 10, 64)
		case "direct":
			c.Direct, err = strconv.ParseBool(value)
		default:
			err = errors.New("no part of a copy is called so")
		}
		if err != nil {
			return c, fmt.Errorf("copy: %s: %w", arg, err)
		}
	}
	if c.Dir == "" || c.Block <= 0 || c.Size < int64(c.Block) {
		return c, fmt.Errorf("copy: %q: want a folder, and a size that holds a block", strings.Join(args, " "))
	}
	return c, nil
}

// RunCopy writes the file, and adds each write to the log as it returns. The loop runs on
// a thread of its own and allocates nothing.
func RunCopy(c Copy, times *Log) (err error) {
	flags := os.O_WRONLY
	if c.Direct {
		flags |= unix.O_DIRECT
	}
	f, err := nameless(c.Dir, flags)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block, err := allocate(c.Block)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(block) }()
	fill(block)
	clock, err := newClock()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd := int(f.Fd())
	for n := range c.Writes() {
		stamp(block, uint64(n))
		began := clock.now()
		if err := writeWhole(fd, block, int64(n)*int64(c.Block)); err != nil {
			return fmt.Errorf("copy: write to a file in %s at %d: %w", c.Dir, int64(n)*int64(c.Block), err)
		}
		times.Add(Timing{At: began, Took: time.Duration(clock.now() - began)})
	}
	return nil
}

// writeWhole is usually one write(2): the kernel may write less near the end of a disk.
func writeWhole(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}
