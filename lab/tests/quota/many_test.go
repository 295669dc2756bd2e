package quota_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// Directories that get quotas at the same time have different projects.
func TestAtOnce(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V2, lab.NoSystemd, lab.Long, lab.Whole)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		const many = 64
		type answer struct {
			dir string
			out []byte
			err error
		}
		answers := make(chan answer)
		for i := range many {
			dir := subdir(t, disk.Dir, fmt.Sprint("d", i))
			go func() {
				out, err := exec.Command("weir", "quota", "set", dir, fmt.Sprint(1+i, "MB"), "--json").CombinedOutput()
				answers <- answer{dir, out, err}
			}()
		}
		of := map[uint32]string{}
		for range many {
			a := <-answers
			var doc struct{ Quotas []status }
			if err := json.Unmarshal(a.out, &doc); a.err != nil || err != nil || len(doc.Quotas) != 1 {
				t.Fatalf("weir quota set %s: %v: %s", a.dir, a.err, a.out)
			}
			project := doc.Quotas[0].Project
			if of[project] != "" {
				t.Errorf("%s and %s are both project %d", of[project], a.dir, project)
			}
			of[project] = a.dir
		}
		for _, st := range list(t) {
			if now, inherit := projects(t, st.Paths[0]); now[st.Project] != 1 || inherit != 1 || of[st.Project] != st.Paths[0] {
				t.Errorf("%+v: its files are in %v", st, now)
			}
		}
		// The same directory at once: one sets it, the others do or say who is at it.
		dir := subdir(t, disk.Dir, "same")
		tree(t, dir, 2000)
		for range 8 {
			go func() {
				out, err := exec.Command("weir", "quota", "set", dir, "1GB").CombinedOutput()
				answers <- answer{dir, out, err}
			}()
		}
		done := 0
		for range 8 {
			if a := <-answers; a.err == nil {
				done++
			} else {
				t.Logf("%s", a.out)
			}
		}
		if st := list(t, dir); done == 0 || len(st) != 1 || len(list(t)) != many+1 {
			t.Errorf("%d have set it: %+v", done, st)
		}
	})
}

// tree makes so many files in directories of a hundred, some with content, some linked.
func tree(t *testing.T, dir string, files int) {
	t.Helper()
	for i := 0; i < files; i += 100 {
		below := filepath.Join(dir, itoa(i/10_000), itoa(i/100))
		if err := os.MkdirAll(below, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := makeFiles(below, min(100, files-i)-2); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(below, "f0"), filepath.Join(below, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(below, "text"), make([]byte, 1+i%9000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	unix.Sync()
}

// Whenever weir is killed while it sets or clears a quota, running it again completes the
// change.
func TestKillsOfQuotas(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V2, lab.NoSystemd, lab.Long)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		if disk.FS == "xfs" { // the change is of inodes, which have their projects alike on both
			lab.Need(t, lab.Whole)
		}
		times := lab.Times(t, "WEIR_KILLS", 5)
		files := 50_000
		if times < 20 {
			files = lab.More(4_000, 10_000) // which take no minute to make
		}
		dir := subdir(t, disk.Dir, "data")
		tree(t, dir, files)
		plain, _ := projects(t, dir)
		began := time.Now()
		mustWeir(t, "quota", "set", dir, "1GB")
		setting := time.Since(began)
		began = time.Now()
		mustWeir(t, "quota", "clear", dir)
		clearing := time.Since(began)
		t.Logf("%s: a set takes %s, a clear %s", disk.FS, setting, clearing)
		for i := range times {
			lab.Killed(t, setting*5/4, "quota", "set", dir, "1GB")
			if rand.N(2) == 0 {
				mustWeir(t, "quota", "set", dir, "1GB")
				isWhole(t, dir)
				lab.Killed(t, clearing*5/4, "quota", "clear", dir)
				if len(list(t)) == 0 { // it was done before it was killed
					continue
				}
			} else if len(list(t)) == 0 {
				continue // it was killed before it began
			}
			mustWeir(t, "quota", "clear", dir)
			if now, inherit := projects(t, dir); now[0] != plain[0] || len(now) != 1 || inherit != 0 {
				t.Fatalf("round %d: after clear the files are in %v", i, now)
			}
			if all := list(t); len(all) != 0 {
				t.Fatalf("round %d: after clear: %+v", i, all)
			}
		}
		mustWeir(t, "quota", "set", dir, "1GB")
		isWhole(t, dir)
	})
}

// isWhole checks that the kernel counts all of a tree in its quota's project.
func isWhole(t *testing.T, dir string) {
	t.Helper()
	st := of(t, dir)
	bytes, files := du(t, dir)
	if st.State != "set" || st.Used.Bytes != bytes || st.Used.Files != files || st.Limit.Bytes == 0 {
		t.Fatalf("%+v, and there are %d bytes in %d files", st, bytes, files)
	}
}

// An interrupted set takes back what it did.
func TestInterrupted(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V2, lab.NoSystemd, lab.Long, lab.Whole)
	onEach(t, func(t *testing.T, disk *lab.TestDisk) {
		dir := subdir(t, disk.Dir, "data")
		tree(t, dir, 5_000)
		began := time.Now()
		mustWeir(t, "quota", "set", dir, "1GB")
		setting := time.Since(began)
		mustWeir(t, "quota", "clear", dir)
		taken := 0
		for range 3 {
			cmd := exec.Command("weir", "quota", "set", dir, "1GB")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(setting/4 + rand.N(setting/2))
			if err := cmd.Process.Signal(unix.SIGINT); err != nil {
				t.Fatal(err)
			}
			if cmd.Wait() == nil { // it was done before
				mustWeir(t, "quota", "clear", dir)
				continue
			}
			taken++
			if now, inherit := projects(t, dir); len(now) != 1 || now[0] == 0 || inherit != 0 || len(list(t)) != 0 {
				t.Errorf("an interrupted set leaves %v and %+v", now, list(t))
			}
		}
		if taken == 0 {
			t.Error("no set was interrupted")
		}
	})
}

// How long a set on many files takes, beside xfs_quota, which can do it on XFS only.
func TestManyFiles(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.Long, lab.Whole, lab.V2, lab.MinKernel(5, 12), lab.Command("xfs_quota"))
	files := lab.Times(t, "WEIR_FILES", 50_000)
	disk := lab.Disk(t, lab.FS("xfs"))
	clearAfter(t)
	dir := subdir(t, disk.Dir, "data")
	began := time.Now()
	tree(t, dir, files)
	t.Logf("%d files made in %.1fs", files, time.Since(began).Seconds())
	others := func(verb string) time.Duration {
		return cold(t, func() {
			out, err := exec.Command("xfs_quota", "-x", "-D", "/dev/null", "-P", "/dev/null", "-c", "project "+verb+" -p "+dir+" 4711", disk.Dir).CombinedOutput()
			if err != nil {
				t.Fatalf("xfs_quota: %v: %s", err, out)
			}
		})
	}
	rounds := 3
	if files >= 1_000_000 { // which take minutes each time
		rounds = 1
	}
	least, theirs := time.Hour, time.Hour
	for range rounds {
		theirs = min(theirs, others("-s"))
		if st := of(t, dir); st.Project != 4711 || st.Used.Files < uint64(files) {
			t.Fatalf("xfs_quota leaves %+v", st)
		}
		others("-C")
		least = min(least, cold(t, func() { mustWeir(t, "quota", "set", dir, "100GB") }))
		isWhole(t, dir)
		mustWeir(t, "quota", "clear", dir)
	}
	ratio := least.Seconds() / theirs.Seconds()
	t.Logf("%d files: weir %.2fs, xfs_quota %.2fs, ratio %.2f", files, least.Seconds(), theirs.Seconds(), ratio)
	if ratio > 1.2 {
		t.Errorf("weir takes %.2f times as long as xfs_quota", ratio)
	}
}

// cold times something on a disk that has nothing in memory.
func cold(t *testing.T, do func()) time.Duration {
	t.Helper()
	unix.Sync()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	do()
	return time.Since(began)
}
