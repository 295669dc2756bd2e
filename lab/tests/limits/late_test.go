package limits_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A group that gets the io controller after it has written a file: the kernel writes that file back as
// before, past the rule, and charges nobody below the group above. It does as the rule says once the
// group has written to another file of the disk. It may do so earlier: metadata of the file system
// makes it look, too. What it charges is held.
func TestIOIsOffAtFirst(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	const name, size, limit = "/weir-late/group", 8 << 20, 4e6
	above, dir := filepath.Join(e.Cgroups.Unified, filepath.Dir(name)), filepath.Join(e.Cgroups.Unified, name)
	lab.Cgroup(t, above)
	control := func(change string) {
		if err := os.WriteFile(filepath.Join(above, "cgroup.subtree_control"), []byte(change), 0); err != nil {
			t.Fatal(err)
		}
	}
	control("+memory")
	lab.Cgroup(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "io.max")); !os.IsNotExist(err) {
		t.Fatalf("the group has io.max from the start: %v", err)
	}
	file := fileIn(t, disk.Dir, "f")
	write := func(file string, bytes int) time.Duration {
		began := time.Now()
		const in = `echo $$ >"$0/cgroup.procs" && exec dd if=/dev/zero of="$1" bs="$2" count=1 conv=notrunc,fsync`
		if text, err := exec.Command("sh", "-c", in, dir, file, fmt.Sprint(bytes)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return time.Since(began)
	}
	write(file, size)
	control("+io")
	weir(t, "set", "cgroup:"+name, "--quiet", "--hold", "kernel", "--write", fmt.Sprint(int(limit)), "--on", disk.Dir)
	defer weir(t, "clear", "cgroup:"+name, "--quiet")
	own, held := charged(t, dir, disk), time.Duration(size/limit*float64(time.Second))
	took := write(file, size)
	t.Logf("a file that the group wrote before: %d bytes in %s, of which it was charged %d; the limit has them take %s", size, took, own(), held)
	if charged := float64(own()) / size; took.Seconds() < charged*held.Seconds()*0.9 || took > held/2 && charged < 0.1 {
		t.Errorf("%d bytes took %s, and the group was charged %.2f of them", size, took, charged)
	}

	write(fileIn(t, disk.Dir, "another"), 4096)
	until(t, "the kernel to charge the group", 20*time.Second, func() bool {
		before := own()
		write(file, 64<<10)
		return own()-before >= 64<<10
	})
	before := own()
	took = write(file, size)
	t.Logf("after another file: %s, charged %d", took, own()-before)
	if took < held*9/10 || own()-before < size {
		t.Errorf("after another file the kernel does not hold it: %d bytes took %s, of which it was charged %d", size, took, own()-before)
	}
}
