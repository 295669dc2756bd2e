package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weir-io/weir/internal/host/hosttest"
)

// A maker makes machines at random, from what real ones have and what nobody expects.
type maker struct {
	*rand.Rand
	mounts, rules []string // lines of the corpora
}

// newMaker makes the machines of a seed.
func newMaker(t testing.TB, seed uint64) *maker {
	t.Helper()
	return &maker{rand.New(rand.NewPCG(seed, seed)), corpus(t, "mountinfo"), corpus(t, "cgroupfs")}
}

// corpus is every line of a package's corpus, answers left out.
func corpus(t testing.TB, name string) (lines []string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("../../internal/linux", name, "testdata/corpus.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if !strings.HasSuffix(f.Name, ".want") {
			lines = append(lines, strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")...)
		}
	}
	return lines
}

func pick[T any](m *maker, all []T) T { return all[m.IntN(len(all))] }

// oddNames are names of groups, units, files and devices.
func oddNames() []string {
	return []string{"a b", "x (deleted)", "\x1b[2J\x1b]0;x\a", "\xff\xfe", "\u202eexe", "-rf", `a\x2d`, "%n$HOME", "'\"", "über", strings.Repeat("n", 250),
		"nginx.service", "system.slice", "user-1000.slice", "docker", "docker-" + containerID + ".scope", "libpod-" + containerID + ".scope",
		containerID, "cri-containerd-" + containerID + ".scope", "kubepods.slice", "kubepods-besteffort-pod3f2a9c1b_5d7e_8f90_1234_567890abcdef.slice",
		"machine-qemu\\x2d1\\x2ddb.scope", "init.scope", ".service", "weir-run-1", "a,b=c", "a:b", "..x", "line\nbreak", "tab\tbed"}
}

// text is anything: empty, long, cut, or numbers at their bounds.
func (m *maker) text() string {
	switch m.IntN(9) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("x", 200_000) + "\n"
	case 2:
		return strings.Repeat("8:0 rbps=1 wbps=max\n", 3000)
	case 3:
		return "max\n"
	case 4:
		return pick(m, []string{"-1\n", "0\n", "18446744073709551616\n", "9223372036854775807\n", "1e9\n", "254:0 max max max\n"})
	case 5:
		return pick(m, m.mounts) + "\n"
	case 6:
		return pick(m, m.rules) + "\n"
	case 7:
		return pick(m, oddNames()) + "\n"
	}
	noise := make([]byte, m.IntN(600))
	for i := range noise {
		noise[i] = byte(m.Uint32())
	}
	return string(noise)
}

// make makes one machine in a directory.
func (m *maker) make(t testing.TB, dir string) {
	t.Helper()
	version := pick(m, []string{"v1", "v2"})
	if err := hosttest.Make(dir, version); err != nil {
		t.Fatal(err)
	}
	changes := []func(dir string){m.moreMounts, m.moreGroups, m.moreRules, m.spoil, m.spoil, m.kernel, m.records, m.devices, m.configuration}
	for range m.IntN(9) {
		pick(m, changes)(dir)
	}
}

// put writes a file; where the machine has another thing there, that stays.
func put(dir, name, text string) {
	file := filepath.Join(dir, name)
	_ = os.MkdirAll(filepath.Dir(file), 0o777)
	_ = os.WriteFile(file, []byte(text), 0o666)
}

// found lists what a machine has: groups, or files.
func found(dir string, is func(path string, d fs.DirEntry) bool) (all []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && is(path, d) {
			all = append(all, path)
		}
		return nil
	})
	return all
}

func groupsOf(dir string) []string {
	return append(found(filepath.Join(dir, "sys/fs/cgroup"), func(_ string, d fs.DirEntry) bool { return d.IsDir() }), filepath.Join(dir, "sys/fs/cgroup"))
}

func (m *maker) moreMounts(dir string) {
	for _, process := range []string{"1", "4711", "4712"} {
		var more strings.Builder
		for range m.IntN(60) {
			more.WriteString(pick(m, m.mounts) + "\n")
		}
		file := filepath.Join(dir, "proc", process, "mountinfo")
		if old, err := os.ReadFile(file); err == nil && m.IntN(4) > 0 {
			_ = os.WriteFile(file, append(old, more.String()...), 0o666)
		}
	}
}

// moreGroups makes groups with processes and rules.
func (m *maker) moreGroups(dir string) {
	at := pick(m, groupsOf(dir))
	for n := range 1 + m.IntN(12) {
		name := pick(m, oddNames())
		if strings.Contains(name, "\n") {
			continue // the kernel refuses it
		}
		if m.IntN(3) == 0 {
			at = filepath.Join(at, name)
		}
		group, pid := filepath.Join(at, name), fmt.Sprint(5000+m.IntN(900)+n)
		for file, text := range map[string]string{"cgroup.procs": pid + "\n", "cgroup.controllers": "io memory\n", "cgroup.type": "domain\n", "cgroup.subtree_control": "io\n",
			"io.max": m.rule(), "io.stat": m.rule(), "memory.max": "max\n", "memory.high": "max\n", "memory.stat": "file_dirty 5\n", "memory.swap.current": "4096\n", "memory.current": "8192\n",
			"blkio.throttle.write_bps_device": "8:0 5\n", "blkio.throttle.read_bps_device": "", "blkio.throttle.read_iops_device": "", "blkio.throttle.write_iops_device": ""} {
			put(group, file, text)
		}
		path := strings.TrimPrefix(group, filepath.Join(dir, "sys/fs/cgroup"))
		put(dir, "proc/"+pid+"/cgroup", "3:memory:/\n2:blkio:"+strings.TrimPrefix(path, "/blkio")+"\n0::"+path+"\n")
		put(dir, "proc/"+pid+"/mountinfo", pick(m, m.mounts)+"\n"+pick(m, m.mounts)+"\n21 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
		put(dir, "proc/"+pid+"/comm", pick(m, oddNames())+"\n")
		put(dir, "proc/"+pid+"/stat", pid+" ("+pick(m, oddNames())+") S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9 0 0\n")
		put(dir, "proc/"+pid+"/cmdline", pick(m, oddNames())+"\x00-x\x00")
	}
}

func (m *maker) rule() string {
	var all strings.Builder
	for range m.IntN(8) {
		all.WriteString(pick(m, append(m.rules, "254:0 rbps=max wbps=5 riops=max wiops=max", "254:16 rbps=7 wbps=max riops=1 wiops=18446744073709551615")) + "\n")
	}
	return all.String()
}

func (m *maker) moreRules(dir string) {
	for _, group := range groupsOf(dir) {
		for _, file := range []string{"io.max", "io.stat", "io.latency", "io.cost.qos", "blkio.throttle.write_bps_device", "blkio.throttle.read_iops_device"} {
			if m.IntN(3) == 0 {
				put(group, file, m.rule())
			}
		}
	}
}

// spoil gives files a content that no kernel prints, or takes them away.
func (m *maker) spoil(dir string) {
	files := found(dir, func(_ string, d fs.DirEntry) bool { return d.Type().IsRegular() })
	for range 1 + m.IntN(4) {
		file := pick(m, files)
		switch m.IntN(6) {
		case 0:
			_ = os.Remove(file)
		case 1:
			_, _ = os.Remove(file), os.Mkdir(file, 0o777)
		case 2:
			_, _ = os.Remove(file), os.Symlink(filepath.Base(file), file)
		case 3:
			if old, err := os.ReadFile(file); err == nil {
				_ = os.WriteFile(file, old[:m.IntN(len(old)+1)], 0o666)
			}
		default:
			_ = os.WriteFile(file, []byte(m.text()), 0o666)
		}
	}
}

func (m *maker) kernel(dir string) {
	release := pick(m, []string{"5.10.0-32-amd64", "6.1.0", "7.2", "4.18.0-553.el8", "weird", ""})
	put(dir, "proc/sys/kernel/osrelease", release+"\n")
	put(dir, "boot/config-"+release, pick(m, []string{"CONFIG_BLK_DEV_THROTTLING=y\n", "# CONFIG_BLK_DEV_THROTTLING is not set\nCONFIG_BLK_CGROUP=y\n# CONFIG_CGROUP_WRITEBACK is not set\n", m.text()}))
	put(dir, "proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n"+pick(m, []string{"/dev/vda1 partition 976 4 -2\n", "/data/swap file 99 98 -3\n", "/dev/vdb\\040x partition 1 1 1\n", m.text()}))
	for _, setting := range []string{"dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes", "dirty_expire_centisecs", "dirty_writeback_centisecs"} {
		put(dir, "proc/sys/vm/"+setting, pick(m, []string{"0\n", "10\n", m.text()}))
	}
	put(dir, "proc/vmstat", pick(m, []string{"nr_dirty 5\nnr_dirty_threshold 100000\nnr_dirty_background_threshold 50000\n", m.text()}))
	for _, name := range []string{"strict_limit", "max_bytes", "min_bytes", "read_ahead_kb"} {
		put(dir, "sys/class/bdi/254:16/"+name, pick(m, []string{"0\n", "1\n", "16777216\n", m.text()}))
	}
	for _, name := range []string{"queue/rotational", "queue/max_sectors_kb", "queue/scheduler", "queue/nr_requests", "stat", "removable"} {
		put(dir, "sys/devices/pci0000:00/block/vdb/"+name, pick(m, []string{"0\n", "1280\n", "[mq-deadline] none\n", m.text()}))
	}
}

// records puts anything where weir has its own.
func (m *maker) records(dir string) {
	for _, name := range []string{"run/weir/run.1.json", "run/weir/pacer.x.json", "run/weir/change.2.json", "var/lib/weir/limits/docker%3Aabc.json", "var/lib/weir/volumes/.records/data.json",
		"var/lib/weir/quotas/65536.json", "var/lib/weir/plans/cgroup%3A%2Fbatch.json"} {
		if m.IntN(2) == 0 {
			put(dir, name, pick(m, []string{m.text(), "{", "[]", `{"target":"cgroup:/batch","limits":[{"device":"254:0","limit":{"wbps":5}}]}`, `{"name":"data","mount":"/data","limit":{"wbps":5}}`}))
		}
	}
}

// devices adds disks and what stands on them, or on itself.
func (m *maker) devices(dir string) {
	block := "sys/devices/pci0000:00/block/"
	for n := range 1 + m.IntN(5) {
		name, number := pick(m, []string{"sdb", "dm-0", "loop7", "md0", "nvme0n1", "zram0"}), fmt.Sprintf("%d:%d", 8+m.IntN(250), n)
		put(dir, block+name+"/dev", pick(m, []string{number, number + "\n", m.text()}))
		put(dir, block+name+"/size", pick(m, []string{"2048\n", m.text()}))
		put(dir, block+name+"/dm/name", pick(m, oddNames())+"\n")
		put(dir, block+name+"/loop/backing_file", pick(m, []string{"/data/file\n", "/" + pick(m, oddNames()) + "\n"}))
		put(dir, block+name+"/slaves/x", "")
		_ = os.MkdirAll(filepath.Join(dir, "sys/dev/block"), 0o777)
		_ = os.Symlink("../../devices/pci0000:00/block/"+name, filepath.Join(dir, "sys/dev/block", number))
		_ = os.Symlink("../../../"+pick(m, []string{"vda", "vdb", name, "none"}), filepath.Join(dir, block+name+"/slaves", pick(m, []string{"vda", "vdb", name})))
		_ = os.Symlink("../../devices/pci0000:00/block/"+name, filepath.Join(dir, "sys/class/block", name))
	}
}

func (m *maker) configuration(dir string) {
	put(dir, "etc/weir/plans.d/a.yaml", pick(m, []string{"plans: {small: {write: 5MB/s}}\nassign: [{cgroup: \"/batch*\", plan: small}]\n", "plans: {a: &a {write: 1}, b: *a}\n", m.text()}))
	put(dir, "etc/cgconfig.conf", pick(m, []string{"group a { blkio { blkio.throttle.write_bps_device = \"254:0 5\"; } }\n", m.text()}))
}
