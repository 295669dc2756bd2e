package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Dirty is how much the host lets become dirty, and how much is dirty (vm.rst, dirty_*). Of
// each pair of a ratio and bytes one is in force; the kernel sets the other to 0.
type Dirty struct {
	BackgroundRatio uint64 // percent of the memory that can become dirty
	BackgroundBytes uint64
	Ratio           uint64
	Bytes           uint64
	Expire          time.Duration // from when on a dirty page is written back
	Writeback       time.Duration // how often the flusher looks for those; 0: never

	BackgroundAt uint64 // from where on the flusher writes back; 0: not known
	LimitAt      uint64 // from where on writers wait; 0: not known
	Now          uint64
	InWriteback  uint64
}

// SettingsDir is where the six settings are.
const SettingsDir = "/proc/sys/vm/"

// Dirty reads the settings and, from /proc/vmstat, what they come to now. There is
// false on a host whose files are not there.
func (f FS) Dirty() (d Dirty, there bool, err error) {
	var expire, writeback uint64
	for name, into := range map[string]*uint64{
		"dirty_background_ratio": &d.BackgroundRatio, "dirty_background_bytes": &d.BackgroundBytes,
		"dirty_ratio": &d.Ratio, "dirty_bytes": &d.Bytes,
		"dirty_expire_centisecs": &expire, "dirty_writeback_centisecs": &writeback,
	} {
		if *into, there, err = f.number(SettingsDir + name); err != nil || !there {
			return Dirty{}, false, err
		}
	}
	d.Expire, d.Writeback = time.Duration(expire)*10*time.Millisecond, time.Duration(writeback)*10*time.Millisecond
	text, err := f.read("/proc/vmstat")
	if errors.Is(err, fs.ErrNotExist) {
		return d, true, nil
	}
	if err != nil {
		return Dirty{}, false, err
	}
	page := uint64(os.Getpagesize())
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		into := map[string]*uint64{"nr_dirty_background_threshold": &d.BackgroundAt, "nr_dirty_threshold": &d.LimitAt,
			"nr_dirty": &d.Now, "nr_writeback": &d.InWriteback}[name]
		if into == nil {
			continue
		}
		pages, err := strconv.ParseUint(value, 10, 48)
		if err != nil {
			return Dirty{}, false, fmt.Errorf("parse /proc/vmstat: %q is no number", line)
		}
		*into = pages * page
	}
	return d, true, nil
}
