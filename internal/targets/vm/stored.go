package vm

import (
	"bytes"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/weir-io/weir/internal/base/peek"
)

// storedMost bounds what is read of a domain, in bytes. libvirt stores some 10 kB of most.
const storedMost = 4 << 20

// Stored is what libvirt has stored of the domains that run. It replaces a domain's file whenever the domain gets or loses a
// disk (qemuDomainAttachDeviceLiveAndConfig in src/qemu/qemu_driver.c), but also with each change of its memory
// (qemuProcessHandleBalloonChange in src/qemu/qemu_process.c). So it is compared what a file says of disks.
type Stored struct {
	folders []int64 // when a file in each was replaced
	domains map[string]stored
}

type stored struct {
	inode uint64
	at    int64  // when it was written
	disks uint64 // a sum of what it says of them; of a file that cannot be read, when it was written
}

// Store reads what libvirt has stored, if that is not as it was.
func Store(root string, was Stored) (now Stored) {
	for _, driver := range drivers {
		at := int64(0)
		if info, err := os.Stat(Kind{Root: root}.folder(driver)); err == nil {
			at = info.ModTime().UnixNano()
		}
		now.folders = append(now.folders, at)
	}
	now.domains = map[string]stored{}
	for i, driver := range drivers {
		if i < len(was.folders) && was.folders[i] == now.folders[i] {
			for name, one := range was.domains {
				if strings.HasPrefix(name, driver+"/") {
					now.domains[name] = one
				}
			}
			continue
		}
		now.read(Kind{Root: root}.folder(driver), driver, was)
	}
	return now
}

// read reads the files of a driver that were replaced.
func (s *Stored) read(folder, driver string, was Stored) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // libvirt has not run anything here
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".xml" {
			continue
		}
		info, err := e.Info()
		if err != nil { // it is gone
			continue
		}
		st, is := info.Sys().(*syscall.Stat_t)
		if !is {
			continue
		}
		name := driver + "/" + e.Name()
		at := info.ModTime().UnixNano()
		if before, is := was.domains[name]; is && before.inode == st.Ino && before.at == at {
			s.domains[name] = before
			continue
		}
		one := stored{st.Ino, at, uint64(at)}
		if text, err := peek.Regular(filepath.Join(folder, e.Name()), storedMost); err == nil {
			one.disks = disksIn(text)
		}
		s.domains[name] = one
	}
}

// disksIn is a sum of the sources of disks that a domain's file names. libvirt writes each in a line.
func disksIn(text []byte) uint64 {
	sum := fnv.New64a()
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte("<source ")) {
			_, _ = sum.Write(bytes.TrimSpace(line)) // it never fails
			_, _ = sum.Write([]byte{'\n'})
		}
	}
	return sum.Sum64()
}

// IsNews reports whether a domain may have another disk than before, or is new.
func (s Stored) IsNews(was Stored) bool {
	for name, one := range s.domains {
		if before, is := was.domains[name]; !is || before.disks != one.disks {
			return true
		}
	}
	return false
}
