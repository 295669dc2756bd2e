package blkdev

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Counters are what a device has done since it was made. sysfs counts sectors of 512
// bytes, whatever the device's own are (Documentation/block/stat.rst).
type Counters struct {
	Reads        uint64 `json:"reads"` // operations completed
	ReadBytes    uint64 `json:"read_bytes"`
	Writes       uint64 `json:"writes"`
	WrittenBytes uint64 `json:"written_bytes"`
}

// An Activity is what a device does, beside its counters (Documentation/block/stat.rst).
type Activity struct {
	Counters
	InFlight uint64        // I/Os that were handed to the device and have not completed
	Busy     time.Duration // with at least one I/O in flight, since the device was made
	Waited   time.Duration // the time of all I/Os added up: over Busy's clock it is the mean queue
}

// Counters reads a device's stat file in sysfs (Documentation/ABI/stable/sysfs-block). For an
// NVMe disk with several paths that counts nothing itself it adds up its paths.
func (fs FS) Counters(n Number) (Counters, error) {
	c, err := fs.counters("/sys/dev/block/" + n.String())
	if err != nil || c != (Counters{}) {
		return c, err
	}
	for _, dir := range fs.nvmePaths(n) {
		of, err := fs.counters(dir)
		if err != nil {
			return Counters{}, err
		}
		c.add(of)
	}
	return c, nil
}

func (c *Counters) add(o Counters) {
	c.Reads, c.ReadBytes = c.Reads+o.Reads, c.ReadBytes+o.ReadBytes
	c.Writes, c.WrittenBytes = c.Writes+o.Writes, c.WrittenBytes+o.WrittenBytes
}

// nvmePaths are the directories of the paths of an NVMe disk with several paths: those of
// nvme0n1 are nvme0c1n1 and so on, which have no number of their own. Before Linux 6.4 only the
// paths count I/O (drivers/nvme/host/multipath.c; commit d4d957b53d91 makes the disk count).
func (fs FS) nvmePaths(n Number) (dirs []string) {
	dir, err := fs.sysDir("/sys/dev/block/" + n.String())
	name := path.Base(dir)
	subsystem, namespace, is := strings.Cut(strings.TrimPrefix(name, "nvme"), "n")
	if err != nil || !is || !strings.HasPrefix(name, "nvme") || !isNumber(subsystem) || !isNumber(namespace) {
		return nil
	}
	entries, err := os.ReadDir(fs.at("/sys/class/block"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		rest, is := strings.CutPrefix(e.Name(), "nvme"+subsystem+"c")
		controller, of, cut := strings.Cut(rest, "n")
		if is && cut && of == namespace && isNumber(controller) {
			dirs = append(dirs, "/sys/class/block/"+e.Name())
		}
	}
	return dirs
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// Activity reads a device's stat file once. An NVMe disk with several paths has what Counters
// says; before Linux 6.4 the rest of it is 0.
func (fs FS) Activity(n Number) (Activity, error) {
	var a Activity
	var busyMS, waitedMS uint64
	err := fs.statFile("/sys/dev/block/"+n.String(), map[int]*uint64{0: &a.Reads, 2: &a.ReadBytes, 4: &a.Writes, 6: &a.WrittenBytes,
		8: &a.InFlight, 9: &busyMS, 10: &waitedMS})
	if err != nil {
		return Activity{}, err
	}
	a.ReadBytes, a.WrittenBytes = a.ReadBytes*sectorBytes, a.WrittenBytes*sectorBytes
	a.Busy, a.Waited = time.Duration(busyMS)*time.Millisecond, time.Duration(waitedMS)*time.Millisecond
	if a == (Activity{}) {
		a.Counters, err = fs.Counters(n)
	}
	return a, err
}

func (fs FS) counters(dir string) (Counters, error) {
	var c Counters
	if err := fs.statFile(dir, map[int]*uint64{0: &c.Reads, 2: &c.ReadBytes, 4: &c.Writes, 6: &c.WrittenBytes}); err != nil {
		return Counters{}, err
	}
	c.ReadBytes *= sectorBytes
	c.WrittenBytes *= sectorBytes
	return c, nil
}

// statFile reads fields of a device's stat file, by their places.
func (fs FS) statFile(dir string, counters map[int]*uint64) error {
	name := path.Base(dir)
	text, err := fs.attr(dir + "/stat")
	if err != nil {
		return fmt.Errorf("read counters of device %s: %w", name, err)
	}
	fields := strings.Fields(text)
	for i, counter := range counters {
		if i >= len(fields) {
			return fmt.Errorf("read counters of device %s: %q has too few fields", name, text)
		}
		if *counter, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return fmt.Errorf("read counters of device %s: %w", name, err)
		}
	}
	return nil
}
