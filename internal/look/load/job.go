package load

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Path is how an I/O reaches the disk.
type Path string

// The paths.
const (
	// Direct is O_DIRECT: past the page cache.
	Direct Path = "direct"
	// Buffered goes through the page cache. The kernel writes it back when it likes:
	// nothing is synced.
	Buffered Path = "buffered"
	// Sync is O_DSYNC: through the page cache, and each write waits for the disk. The
	// first round over a new file pays for its allocation as well. Reads are Buffered
	// ones.
	Sync Path = "sync"
	// Mapped is a shared mapping. A write stores a block into it and has msync(2)
	// MS_SYNC put the block on the disk (MS_ASYNC does nothing on Linux); a read touches
	// each page of the block.
	Mapped Path = "mapped"
	// Async is Linux AIO (io_submit(2)) with O_DIRECT: Depth operations under way at
	// once.
	Async Path = "async"
)

// Paths are all of them.
var Paths = []Path{Direct, Buffered, Sync, Mapped, Async}

// DepthDefault is the Depth of an Async job that names none.
const DepthDefault = 32

const depthMax = 4096

// A Job is a load.
type Job struct {
	Path   Path
	Read   bool // read and not write
	Random bool // the blocks in no order; reads without readahead
	// Alone makes each read through the page cache a request of its own, as Random does:
	// readahead can ask for megabytes at once.
	Alone bool
	// Depth is how many operations of an Async job are under way at once, 1 to 4096;
	// 0 is DepthDefault. A process that ends waits for them: under a limit, for
	// Depth × Block bytes. Other paths do one at a time, and Depth is 0.
	Depth int
	// File is the file to write or read. "fd:N" is a file that the process has inherited,
	// opened anew. A file to write is created if it does not exist; a link is refused.
	File string
	// Dir is where a file without a name is made, instead of File, to write; "fd:N" is a
	// directory that the process has inherited.
	Dir string
	// Block is the bytes of an operation. Direct I/O needs a multiple of the disk's
	// logical block, Mapped one of the page.
	Block int
	// Size is how many bytes of the file are used, round and round; what is left of them
	// beyond whole blocks is not. A buffered writer that is a round ahead of writeback
	// dirties dirty pages again, and the disk never gets the older version: Size bounds
	// what it can leave dirty, and should exceed what it dirties in the time for the
	// disk to do all that the writer does.
	Size int64
	// Pace is the bytes a second that the load keeps below, on average from its start; 0
	// for as fast as it can. Async I/O has none.
	Pace int64
	Warm time.Duration // left out of the counts, from the start
	For  time.Duration // counted, after Warm
}

// name is what errors call the file.
func (j Job) name() string {
	if j.Dir != "" {
		return "a file in " + j.Dir
	}
	return j.File
}

func (j Job) depth() int {
	if j.Depth == 0 {
		return DepthDefault
	}
	return j.Depth
}

// cold reports whether the job reads through the page cache.
func (j Job) cold() bool { return j.Read && j.Path != Direct && j.Path != Async }

func (j Job) check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("load %s: "+format, append([]any{j.name()}, args...)...)
	}
	switch {
	case (j.File == "") == (j.Dir == ""):
		return errors.New("load: either a file or a folder is needed")
	case j.Dir != "" && j.Read:
		return wrong("a new file holds nothing to read")
	case j.Block <= 0 || j.Size < int64(j.Block) || int64(int(j.Size)) != j.Size || j.Warm < 0 || j.For <= 0:
		return wrong("block %d, size %d, times %s and %s: each must be positive, and the size hold a block", j.Block, j.Size, j.Warm, j.For)
	case j.Path == Async && (j.Depth < 0 || j.Depth > depthMax):
		return wrong("depth %d: want 1 to %d", j.Depth, depthMax)
	case j.Pace < 0 || j.Path == Async && j.Pace != 0:
		return wrong("pace %d: want a positive one, and not of async I/O", j.Pace)
	case j.Path != Async && j.Depth != 0:
		return wrong("depth %d: only async I/O has one", j.Depth)
	case j.Path == Mapped && j.Block%os.Getpagesize() != 0:
		return wrong("block %d: a mapping has whole pages of %d bytes", j.Block, os.Getpagesize())
	case strings.HasPrefix(j.File, fdPrefix):
		_, err := inherited(j.File)
		return err
	}
	switch j.Path {
	case Direct, Buffered, Sync, Mapped, Async:
		return nil
	}
	return wrong("no path of an I/O is called %q", j.Path)
}
