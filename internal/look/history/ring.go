package history

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/fault"
)

// The file's head: magic, version, size of a block, how many there are, the level's step in
// seconds, and a checksum of these. It is written once.
const (
	magic    = "weirhist"
	version  = 1
	headSize = 4096
	headUsed = 8 + 4*4 + 4
)

// A block's head: its round's number, when it began (Unix nanoseconds), and a checksum of these.
const blockHead = 8 + 8 + 4

// A record's head: how long it is, and a checksum of its block's number and of it.
const recordHead = 4 + 4

// Bounds of what a file's head may say. Readers have a block in memory, and more for each of its series.
const (
	blockLeast, blockMost = 4096, 8 << 20
	blocksMost            = 1 << 16
)

// castagnoli makes the table when it is asked for: that takes a tenth of a millisecond, which each
// start of weir would pay for.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sum is the checksum of a record of a round.
func sum(round uint64, text []byte) uint32 {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], round)
	return crc32.Update(crc32.Checksum(seed[:], castagnoli()), castagnoli(), text)
}

// A file is what a ring is kept in: *os.File.
type file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

// A ring is a file of blocks, of which the next one takes the place of the oldest.
type ring struct {
	f    file
	name string
	Level
}

// A Level is how often one file has a point, and how large the file is.
type Level struct {
	Step   time.Duration
	Block  int // bytes
	Blocks int
}

// size is that of the whole file, in bytes.
func (l Level) size() int64 { return headSize + int64(l.Block)*int64(l.Blocks) }

func (l Level) head() []byte {
	b := make([]byte, headUsed)
	copy(b, magic)
	for i, v := range []int{version, l.Block, l.Blocks, int(l.Step / time.Second)} {
		binary.LittleEndian.PutUint32(b[8+4*i:], uint32(v))
	}
	binary.LittleEndian.PutUint32(b[headUsed-4:], crc32.Checksum(b[:headUsed-4], castagnoli()))
	return b
}

// levelOf reads a file's head.
func levelOf(name string, b []byte) (l Level, err error) {
	if len(b) < headUsed || string(b[:8]) != magic {
		return l, fmt.Errorf("read %s: it is not a history that weir wrote; move it away", name)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return l, &fault.Unsupported{Feature: "read " + name, Reason: fmt.Sprintf("its format is version %d, and this weir knows %d", v, version), Remedy: "remove it, or use the weir that wrote it"}
	}
	if crc32.Checksum(b[:headUsed-4], castagnoli()) != binary.LittleEndian.Uint32(b[headUsed-4:]) {
		return l, fmt.Errorf("read %s: its header is damaged; remove it", name)
	}
	number := func(i int) int { return int(binary.LittleEndian.Uint32(b[8+4*i:])) }
	l = Level{Block: number(1), Blocks: number(2), Step: time.Duration(number(3)) * time.Second}
	if l.Block < blockLeast || l.Block > blockMost || l.Blocks < 2 || l.Blocks > blocksMost || l.Step <= 0 {
		return l, fmt.Errorf("read %s: its header says %d blocks of %d bytes, and a step of %s; remove it", name, l.Blocks, l.Block, l.Step)
	}
	return l, nil
}

// create makes a file with all its room on the disk, so that a full disk is found out now.
func create(path string, l Level) (err error) {
	draft := path + ".new"
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(l.head(), 0)
	if err == nil {
		err = allocate(f, l.size())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make %s of %d MB: %w", path, l.size()/1e6, err), os.Remove(draft))
	}
	return durable.Rename(draft, path)
}

// allocate gives a file all its room on the disk.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) { // then the room is not kept
		err = f.Truncate(size)
	}
	return err
}

// allocate gives a ring the room that it has not: a copy may have holes, or be cut. One that has it is left
// alone, because a file system may need room to find that out.
func (r *ring) allocate(path string) error {
	f, is := r.f.(*os.File)
	if !is {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Size >= r.size() && st.Blocks*512 >= r.size() {
		return nil
	}
	if err := allocate(f, max(st.Size, r.size())); err != nil {
		return fmt.Errorf("make room for %s of %d MB: %w", path, r.size()/1e6, err)
	}
	return nil
}

// isWhole reports whether a ring's file is at a path, and as long as it has to be, with its head.
func (r *ring) isWhole(f *os.File, path string) (bool, error) {
	own, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(own, there) || own.Size() < r.size() {
		return false, nil //nolint:nilerr // what cannot be found is not there
	}
	head := make([]byte, headUsed)
	_, err = f.ReadAt(head, 0)
	return bytes.Equal(head, r.head()), err
}

// open opens a file to read, or to write too. It waits for no pipe.
func open(path string, flags int) (*ring, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("read %s: it is a symbolic link, which weir does not follow; move it away", path)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(cmp.Or(err, fmt.Errorf("read %s: it is no regular file; move it away", path)), f.Close())
	}
	head := make([]byte, headUsed)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	l, err := levelOf(path, head[:n])
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &ring{f: f, name: filepath.Base(path), Level: l}, nil
}

func (r *ring) offset(block int) int64 { return headSize + int64(block)*int64(r.Block) }

// A block is one of a ring's.
type block struct {
	round uint64 // from 1 on, over all blocks; 0: it was never used
	began time.Time
}

func (b block) head() []byte {
	h := make([]byte, blockHead)
	binary.LittleEndian.PutUint64(h, b.round)
	binary.LittleEndian.PutUint64(h[8:], uint64(b.began.UnixNano()))
	binary.LittleEndian.PutUint32(h[16:], crc32.Checksum(h[:16], castagnoli()))
	return h
}

// blockOf reads a block's head. One that is damaged counts as never used.
func blockOf(h []byte) block {
	if len(h) < blockHead || crc32.Checksum(h[:16], castagnoli()) != binary.LittleEndian.Uint32(h[16:]) {
		return block{}
	}
	ns := int64(binary.LittleEndian.Uint64(h[8:]))
	return block{round: binary.LittleEndian.Uint64(h), began: time.Unix(0, ns)}
}

// place is where the block of a round is.
func (r *ring) place(round uint64) int { return int((round - 1) % uint64(r.Blocks)) }

// blocks lists those that were used, the oldest first.
func (r *ring) blocks() ([]block, error) {
	var all []block
	newest := uint64(0)
	head := make([]byte, blockHead)
	for i := range r.Blocks {
		if _, err := r.f.ReadAt(head, r.offset(i)); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read %s: %w", r.name, err)
		}
		b := blockOf(head)
		if b.round == 0 || b.round == math.MaxUint64 || r.place(b.round) != i {
			continue
		}
		all = append(all, b)
		newest = max(newest, b.round)
	}
	sortBlocks(all)
	// A head that outlived its own round is none of those before the newest.
	for len(all) > 0 && all[0].round+uint64(r.Blocks) <= newest {
		all = all[1:]
	}
	return all, nil
}

// records calls do with each record of a block, in order, and returns how many bytes of the block
// they and its head take. It ends at what is no record, and where do returns false.
func (r *ring) records(b block, buf []byte, do func(text []byte) bool) (used int, err error) {
	buf = buf[:r.Block]
	n, err := r.f.ReadAt(buf, r.offset(r.place(b.round)))
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read %s: %w", r.name, err)
	}
	buf = buf[:n]
	if blockOf(buf) != b {
		return 0, nil // it was used again meanwhile
	}
	used = blockHead
	for len(buf)-used >= recordHead {
		size := int64(binary.LittleEndian.Uint32(buf[used:]))
		if size == 0 || size > int64(len(buf)-used-recordHead) {
			break
		}
		text := buf[used+recordHead:][:size]
		if sum(b.round, text) != binary.LittleEndian.Uint32(buf[used+4:]) || !do(text) {
			break
		}
		used += recordHead + int(size)
	}
	return used, nil
}

// record spells one of a round.
func record(round uint64, text []byte) []byte {
	b := make([]byte, recordHead, recordHead+len(text))
	binary.LittleEndian.PutUint32(b, uint32(len(text)))
	binary.LittleEndian.PutUint32(b[4:], sum(round, text))
	return append(b, text...)
}
