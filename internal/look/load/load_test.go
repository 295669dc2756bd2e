package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testBlock = 16 << 10 // whole pages on every machine but those of 64 KiB

// dirOnDisk is a folder of a file system that has direct I/O and a disk. Memory file
// systems have no, or no real, direct I/O.
func dirOnDisk(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"", "/var/tmp", "."} {
		dir, err := os.MkdirTemp(parent, "weir-load-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || st.Type == unix.TMPFS_MAGIC {
			continue
		}
		f, err := nameless(dir, os.O_RDWR|unix.O_DIRECT)
		if err == nil {
			f.Close()
			return dir
		}
	}
	t.Fatal("none of the folder for temporary files, /var/tmp and this package's folder has direct I/O: set TMPDIR to one on a disk")
	return ""
}

func prepared(t *testing.T, dir string, size int64) *os.File {
	t.Helper()
	f, err := Prepare(t.Context(), dir, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Each path counts what it does, in a new file and in one that was inherited, and
// leaves nothing.
func TestRunCountsWhatItDoes(t *testing.T) {
	dir := dirOnDisk(t)
	const size = 16 * testBlock
	toRead := prepared(t, dir, size)
	for _, path := range Paths {
		for i := range 4 {
			j := Job{Path: path, Read: i%2 == 1, Random: i > 1, Dir: dir, Block: testBlock, Size: size, Warm: 5 * time.Millisecond, For: 30 * time.Millisecond}
			if j.Read {
				j.Dir, j.File = "", fmt.Sprintf("fd:%d", toRead.Fd())
			}
			t.Run(fmt.Sprintf("%s read %t random %t", path, j.Read, j.Random), func(t *testing.T) {
				r, err := Run(t.Context(), j)
				if err != nil {
					t.Fatal(err)
				}
				if r.Ops == 0 || r.Bytes != testBlock*r.Ops || r.Elapsed < j.For || r.Ended-r.Began != int64(r.Elapsed) || r.BytesPerSec() != testBlock*r.OpsPerSec() {
					t.Errorf("%+v", r)
				}
				if r.P50 <= 0 || r.P50 > r.P99 || r.P99 > r.Max || path != Async && r.Max > r.Elapsed || r.Cached != 0 { // what is under way at once waits from before the window
					t.Errorf("%+v", r)
				}
				if buffered := path == Buffered && !j.Read; r.Left.Known && (r.Left.Dirty+r.Left.Writeback > 0) != buffered || r.Left.Dirty+r.Left.Writeback > size {
					t.Errorf("left: %+v", r.Left)
				}
			})
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}

// A load with a pace does no more than that of the time since its start.
func TestAPaceIsKept(t *testing.T) {
	j := Job{Path: Buffered, Dir: dirOnDisk(t), Block: testBlock, Size: 64 * testBlock, Pace: 200 * testBlock, Warm: 10 * time.Millisecond, For: 200 * time.Millisecond}
	began := time.Now()
	r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(200*time.Since(began).Seconds()) + 1; r.Ops > most || r.Ops < 2 {
		t.Errorf("%d operations, want 2 to %d", r.Ops, most)
	}
}

// A file in an inherited directory is made there, whatever its name leads to now; where
// it has to have a name at first, that is gone, and what is not a file is not opened.
func TestNamelessInAnInheritedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	moved := dir + "2"
	if err := errors.Join(os.Rename(dir, moved), os.Symlink("/nowhere", dir)); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("fd:%d", fd)
	if r, err := Run(t.Context(), Job{Path: Buffered, Dir: name, Block: 4096, Size: 8192, For: time.Millisecond}); err != nil || r.Ops == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	f, err := unnamed(fd, name, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Nlink != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		t.Errorf("%+v, %v", st, err)
	}
	if names, err := os.ReadDir(moved); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
	if _, err := reopen(fd, os.O_RDONLY); !errors.Is(err, errIrregular) {
		t.Errorf("a directory: %v", err)
	}
}

// A file with a name is used within its size, round and round.
func TestRunWritesANamedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load")
	j := Job{Path: Buffered, File: file, Block: 4096, Size: 16*4096 + 1, For: 20 * time.Millisecond}
	if r, err := Run(t.Context(), j); err != nil || r.Ops < 32 {
		t.Fatalf("%+v, %v", r, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) != 16*4096+1 {
		t.Fatalf("the file: %d bytes, %v", len(text), err)
	}
	seen := map[string]bool{}
	for block := range slices.Chunk(text[:16*4096], 4096) {
		seen[string(block)] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d blocks of 16 differ", len(seen))
	}
}

// What somebody has mapped stays in the cache, and reads of it are told apart.
func TestReadsFromTheCacheAreTold(t *testing.T) {
	const size = 3 * stretchMax
	f := prepared(t, dirOnDisk(t), size)
	m, err := unix.Mmap(int(f.Fd()), 0, size/2, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(m) }()
	j := Job{Read: true, File: fmt.Sprintf("fd:%d", f.Fd()), Block: 64 << 10, Size: stretchMax, For: 10 * time.Millisecond}
	for _, path := range []Path{Buffered, Sync, Mapped} {
		j.Path = path
		if r, err := Run(t.Context(), j); err != nil || r.Cached != r.Bytes {
			t.Errorf("%s: %d of %d bytes from the cache, want all; %v", j.Path, r.Cached, r.Bytes, err)
		}
	}
	j.Size = size
	c := newCold(j, f, func() error { return nil })
	for at := int64(0); at < size; at += int64(j.Block) {
		want := []float64{1, 0.5, 0}[at/stretchMax]
		cached, worked, err := c.before(uint64(at)/uint64(j.Block), at)
		if err != nil || cached != want || worked != (at%stretchMax == 0) {
			t.Fatalf("at %d: %v of the stretch cached, %t, %v; want %v", at, cached, worked, err, want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := link + "x"
	for name, j := range map[string]Job{
		"no block":        {Path: Buffered, File: none, Size: 1, For: 1},
		"a small file":    {Path: Buffered, File: none, Block: 2, Size: 1, For: 1},
		"no time":         {Path: Buffered, File: none, Block: 1, Size: 1},
		"time backwards":  {Path: Buffered, File: none, Block: 1, Size: 1, Warm: -1, For: 1},
		"another path":    {Path: "other", File: none, Block: 1, Size: 1, For: 1},
		"part of a page":  {Path: Mapped, File: none, Block: 512, Size: 512, For: 1},
		"no depth":        {Path: Async, File: none, Block: 512, Size: 512, Depth: -1, For: 1},
		"too deep":        {Path: Async, File: none, Block: 512, Size: 512, Depth: depthMax + 1, For: 1},
		"backwards":       {Path: Direct, File: none, Block: 512, Size: 512, Pace: -1, For: 1},
		"async pace":      {Path: Async, File: none, Block: 512, Size: 512, Pace: 1, For: 1},
		"depth elsewhere": {Path: Direct, File: none, Block: 512, Size: 512, Depth: 2, For: 1},
		"nothing to read": {Path: Buffered, Read: true, File: none, Block: 1, Size: 1, For: 1},
		"too little":      {Path: Buffered, Read: true, File: short, Block: 1, Size: 6, For: 1},
		"a link":          {Path: Buffered, File: link, Block: 1, Size: 1, For: 1},
		"no file":         {Path: Buffered, Block: 1, Size: 1, For: 1},
		"file and folder": {Path: Buffered, File: none, Dir: dir, Block: 1, Size: 1, For: 1},
		"read a new file": {Path: Buffered, Read: true, Dir: dir, Block: 1, Size: 1, For: 1},
		"no folder":       {Path: Buffered, Dir: none, Block: 1, Size: 1, For: 1},
		"no number":       {Path: Buffered, File: "fd:x", Block: 1, Size: 1, For: 1},
		"a device":        {Path: Buffered, File: "/dev/null", Block: 1, Size: 1, For: 1},
		"no directory":    {Path: Buffered, Dir: "fd:12345", Block: 1, Size: 1, For: 1},
		"not open":        {Path: Buffered, File: "fd:12345", Block: 1, Size: 1, For: 1},
	} {
		if r, err := Run(t.Context(), j); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("left: %v, %v", names, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	dir := dirOnDisk(t)
	for _, path := range Paths {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := Run(ctx, Job{Path: path, Dir: dir, Block: testBlock, Size: 4 * testBlock, For: time.Hour})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Ticks add up to what was done, from the start on, and lie on the result's clock.
func TestRunTicks(t *testing.T) {
	out, in := pipe(t)
	done := make(chan error, 1)
	go func() {
		j := Job{Path: Buffered, Dir: t.TempDir(), Block: 4096, Size: 1 << 20, Warm: 150 * time.Millisecond, For: 200 * time.Millisecond}
		done <- errors.Join(RunTo(t.Context(), j, in), in.Close())
	}()
	var ticks []Tick
	r, err := Decode(out, func(tick Tick) { ticks = append(ticks, tick) })
	if err = errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if len(ticks) < 3 || ticks[0].Ops != 0 {
		t.Fatalf("%+v", ticks)
	}
	first, last := ticks[0], ticks[len(ticks)-1]
	if last.Ops <= r.Ops || last.Bytes != 4096*last.Ops || last.At < r.Ended || r.Began < first.At+int64(150*time.Millisecond) {
		t.Errorf("%+v after %+v", r, ticks)
	}
	for i, tick := range ticks[1:] {
		if tick.At <= ticks[i].At || tick.Ops < ticks[i].Ops {
			t.Errorf("%+v after %+v", tick, ticks[i])
		}
	}
}

func TestStallsAreKept(t *testing.T) {
	m, stop, err := newMeter(t.Context(), Job{Block: 1, For: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	at, err := m.start()
	if err != nil {
		t.Fatal(err)
	}
	for range stallsMax + 1 {
		_, _, err = m.done(at, at+stallAfter+1, 0)
	}
	if _, _, quick := m.done(at, at+stallAfter, 0); err != nil || quick != nil {
		t.Fatal(err, quick)
	}
	if s := m.result.Stalls; len(s) != stallsMax || s[0] != (Stall{At: at, For: time.Second + 1}) {
		t.Errorf("%d stalls, the first %+v", len(s), s[0])
	}
}
