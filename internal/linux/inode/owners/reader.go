package owners

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
)

// A Reader asks the kernel for the owners of inodes. Several goroutines may use it; one
// is served at a time. To open one takes some 60 ms, a question 1 ms and, for each open
// file on the host, less than 1 µs.
type Reader struct {
	hierarchy *cgroupfs.Hierarchy

	mu      sync.Mutex
	objects ownerObjects
	files   *link.Iter
}

// filesMax bounds an answer.
const filesMax = 1 << 18

// memlock is enough for all maps, bytes.
const memlock = 64 << 20

// Open loads the program. Groups are named by their place in v2's hierarchy. If owners cannot
// be read, the error is a *bpf.Unavailable: it means "cannot tell", never "no owner".
func Open(groups *cgroupfs.FS) (*Reader, error) {
	if err := inode.Hindrance(groups); err != nil {
		return nil, err
	}
	r := &Reader{hierarchy: groups.Unified()}
	err := loadOwnerObjects(&r.objects, nil)
	if errors.Is(err, unix.EPERM) && bpf.RaiseMemlock(memlock) {
		err = loadOwnerObjects(&r.objects, nil)
	}
	if err != nil {
		return nil, refused(err)
	}
	if r.files, err = link.AttachIter(link.IterOptions{Program: r.objects.ListOwners}); err != nil {
		return nil, errors.Join(refused(err), r.objects.Close())
	}
	return r, nil
}

// Close unloads the program.
func (r *Reader) Close() error {
	return errors.Join(r.files.Close(), r.objects.Close())
}

// A query is struct query of bpf/owner.bpf.c.
type query struct{ Inode uint64 }

// openIn lists the regular files that processes have open.
func (r *Reader) openIn(ctx context.Context, pids []int) (found []file, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	chosen := r.objects.Processes
	for _, pid := range pids {
		if err := chosen.Put(uint32(pid), uint8(1)); err != nil {
			return nil, errors.Join(asking(fmt.Errorf("choose process %d: %w", pid, err)), forget(chosen, pids))
		}
	}
	found, err = r.ask(ctx, query{})
	return found, errors.Join(err, forget(chosen, pids))
}

func forget(chosen *ebpf.Map, pids []int) error {
	for _, pid := range pids {
		if err := chosen.Delete(uint32(pid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return asking(fmt.Errorf("forget process %d: %w", pid, err))
		}
	}
	return nil
}

// openers lists the processes that have an inode open, as far as weir can see.
func (r *Reader) openers(ctx context.Context, identity uint64) ([]file, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ask(ctx, query{Inode: identity})
}

func (r *Reader) ask(ctx context.Context, q query) ([]file, error) {
	if err := r.objects.Queries.Put(uint32(0), q); err != nil {
		return nil, asking(err)
	}
	answer, err := r.files.Open()
	if err != nil {
		return nil, asking(err)
	}
	defer answer.Close()
	files, err := readFiles(ctx, answer, newNames(r.hierarchy))
	if err != nil {
		return nil, asking(err)
	}
	return files, nil
}

func asking(err error) error { return fmt.Errorf(inode.Reading+": %w", err) }

// readFiles reads an answer to its end. Threads share their process's files, and
// before 5.11 each file is listed for each thread: it is taken once.
func readFiles(ctx context.Context, answer io.Reader, names *names) ([]file, error) {
	type opened struct {
		process, fd uint32
		inode       uint64
	}
	seen := map[opened]bool{}
	var files []file
	var buf [recordBytes]byte
	for {
		if err := readRecord(ctx, answer, buf[:]); errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		rec, err := decode(buf[:])
		if err != nil {
			return nil, err
		}
		key := opened{rec.Process, rec.FD, rec.Inode}
		if seen[key] {
			continue
		}
		seen[key] = true
		if files = append(files, rec.file(names)); len(files) > filesMax {
			return nil, fmt.Errorf("more than %d open files", filesMax)
		}
	}
}

// readRecord fills buf. The kernel answers EAGAIN after very many files that it does not list
// (MAX_ITER_OBJECTS in kernel/bpf/bpf_iter.c), and continues at the next read.
func readRecord(ctx context.Context, answer io.Reader, buf []byte) error {
	for n := 0; n < len(buf); {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := answer.Read(buf[n:])
		n += m
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case errors.Is(err, io.EOF) && n > 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}
