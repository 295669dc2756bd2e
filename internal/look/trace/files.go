package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// File is what operations of one kind did with one file.
type File struct {
	File   string        // its path as a process sees it that had it open, or its name
	Device blkdev.Number // of its file system
	Inode  uint64
	Kind   Kind
	Count  uint64
	Bytes  uint64
	Max    time.Duration
	Split  Split // all their time
}

// Sum is the time of all operations together.
func (f File) Sum() time.Duration { return f.Split.Time() }

// Cause is the part that took most of it.
func (f File) Cause() Part { return f.Split.largest() }

// A FileWatch reads the sums by file, and looks for the files' paths while processes have them
// open.
type FileWatch struct {
	sums  *ebpf.Map
	paths *paths
	found map[opened]string // the paths of files, whichever process has them open
}

// WatchFiles starts a FileWatch, which ends with the trace.
func (t *Tracer) WatchFiles() *FileWatch {
	return &FileWatch{sums: t.maps[traceMapFiles], paths: newPaths(), found: map[opened]string{}}
}

// Look looks for the paths of new files.
func (w *FileWatch) Look() error {
	_, err := w.Files()
	return err
}

// Files returns the sums so far, the most time first.
func (w *FileWatch) Files() ([]File, error) {
	var all []File
	var key fileKey
	var sum fileSum
	each := w.sums.Iterate()
	for each.Next(&key, &sum) {
		all = append(all, key.file(&sum, w.path(&key, &sum)))
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("read sums by file: %w", err)
	}
	slices.SortFunc(all, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Sum(), a.Sum()), cmp.Compare(a.File, b.File), cmp.Compare(a.Kind.String(), b.Kind.String()))
	})
	return all, nil
}

// path returns a file's path, if a process was seen with it open.
func (w *FileWatch) path(key *fileKey, sum *fileSum) string {
	f := opened{device: key.Device, inode: key.Inode, name: text(sum.Name[:])}
	if found, ok := w.found[f]; ok {
		return found
	}
	from := f
	from.tgid = sum.TGID
	found := w.paths.find(from, int(sum.FD))
	if strings.HasPrefix(found, "/") {
		w.found[f] = found // as many as there are sums, at most
	}
	return found
}

func (k fileKey) file(sum *fileSum, path string) File {
	return File{File: path, Device: numberOf(k.Device), Inode: k.Inode, Kind: Kind(k.Kind), Count: sum.Count, Bytes: sum.Bytes, Max: time.Duration(sum.Most), Split: sum.Parts}
}
