package owners

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/inode"
)

func encode(t *testing.T, r record) []byte {
	t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != recordBytes {
		t.Fatalf("a record has %d bytes, not %d", len(b), recordBytes)
	}
	return b
}

func groupOf(id uint64, flags uint32, name string) groupRecord {
	g := groupRecord{ID: id, Parent: 1, Flags: flags}
	copy(g.Name[:], name)
	return g
}

func TestFileOfARecord(t *testing.T) {
	r := record{
		Inode: 0xffff888000000001, Number: 12, Caller: 30, Device: 254<<20 | 17, Process: 4711, FD: 5,
		OpenFlags: unix.O_RDWR | unix.O_DIRECT, Flags: fileKnown | fileTracked | fileOwned | fileBeneath,
		Memory: groupOf(20, groupDead, "old.scope"), IO: groupOf(1, groupRoot, ""),
	}
	decoded, err := decode(encode(t, r))
	if err != nil || decoded != r {
		t.Fatalf("decode(encode(%+v)) = %+v, %v", r, decoded, err)
	}
	got := decoded.file(newNames(nil))
	want := file{inode.File{
		PID: 4711, FD: 5, OpenFlags: unix.O_RDWR | unix.O_DIRECT, Device: blkdev.Number{Major: 254, Minor: 17}, Inode: 12, Beneath: true,
		Owner: inode.Owner{State: inode.Owned, Memory: inode.Group{ID: 20, Name: "old.scope", Dead: true}, IO: inode.Group{ID: 1, Path: "/", Name: "/", Root: true}},
	}, 0xffff888000000001, 30, false}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !got.Writes() || !got.IsDirect() || got.ours() || got.Handle() != "/proc/4711/fd/5" {
		t.Errorf("writes %t, direct %t, ours %t, handle %s", got.Writes(), got.IsDirect(), got.ours(), got.Handle())
	}
	if s := got.Owner.Memory.String(); s != ".../old.scope (removed)" {
		t.Errorf("a removed group is called %q", s)
	}
}

func TestState(t *testing.T) {
	for flags, want := range map[uint32]inode.State{
		0:                                     inode.Unkept,
		fileKnown:                             inode.Unkept,
		fileKnown | fileOwned:                 inode.Unkept,
		fileKnown | fileTracked:               inode.Nobody,
		fileKnown | fileTracked | fileOwned:   inode.Owned,
		fileKnown | fileTracked | fileUnknown: inode.Unknown,
	} {
		if got := (record{Flags: flags}).state(); got != want {
			t.Errorf("flags %#x: %s, want %s", flags, got, want)
		}
	}
}

// chopped is an answer as the kernel may give it: in pieces, with EAGAIN between.
type chopped struct {
	rest []byte
	turn int
}

func (c *chopped) Read(p []byte) (int, error) {
	c.turn++
	if c.turn%2 == 0 {
		return 0, unix.EAGAIN
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 100)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func TestReadFiles(t *testing.T) {
	a := encode(t, record{Inode: 1, Process: 1, FD: 3})
	b := encode(t, record{Inode: 1, Process: 1, FD: 4})
	all := bytes.Join([][]byte{a, b, a}, nil) // a thread's
	files, err := readFiles(t.Context(), &chopped{rest: all}, newNames(nil))
	if err != nil || len(files) != 2 || files[0].FD != 3 || files[1].FD != 4 {
		t.Errorf("readFiles = %+v, %v; want two files", files, err)
	}
	if _, err := readFiles(t.Context(), &chopped{rest: all[:len(all)-1]}, newNames(nil)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer cut short: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readFiles(ctx, &chopped{rest: all}, newNames(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("with its context ended: %v", err)
	}
}
