package tracer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/weir-io/weir/internal/look/trace"
)

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
func (w *FileWatch) Files() ([]trace.File, error) {
	var all []trace.File
	var key fileKey
	var sum fileSum
	each := w.sums.Iterate()
	for each.Next(&key, &sum) {
		all = append(all, key.file(&sum, w.path(&key, &sum)))
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("read sums by file: %w", err)
	}
	slices.SortFunc(all, func(a, b trace.File) int {
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

func (k fileKey) file(sum *fileSum, path string) trace.File {
	return trace.File{File: path, Device: numberOf(k.Device), Inode: k.Inode, Kind: trace.Kind(k.Kind), Count: sum.Count, Bytes: sum.Bytes, Max: time.Duration(sum.Most), Split: sum.Parts}
}
