package background

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/base/peek"
)

// PulseEvery is how often a Pulse is to be looked at. A process that does nothing for pulsesMost
// looks hangs.
const (
	PulseEvery = 100 * time.Millisecond
	pulsesMost = 10
)

// statusMost bounds what is read of a thread, in bytes. The numbers of its switches are at the end,
// behind the list of its user's groups.
const statusMost = 1 << 20

// A Pulse tells whether a process hangs, which another one waits for. One that computes, waits for
// a processor or for a disk, or wakes now and then does not hang, however long it takes: so a slow
// machine needs no patience. Looks are counted, and not time: whoever looks may have been paused
// together with the process.
type Pulse struct {
	pid   int
	seen  uint64 // how often its threads have been switched
	quiet int    // looks since anything has moved
}

// PulseOf is that of a process.
func PulseOf(pid int) *Pulse { return &Pulse{pid: pid} }

// Hangs looks, and reports whether the process has done nothing in the last second of looks. One
// that has ended does not hang.
func (p *Pulse) Hangs() bool {
	switches, busy := p.switches()
	if busy || switches != p.seen {
		p.seen, p.quiet = switches, 0
		return false
	}
	p.quiet++
	return p.quiet >= pulsesMost
}

// switches adds up how often the threads have been switched (/proc/PID/task/TID/status). busy is
// whether one runs, waits for a processor or a disk, or cannot be read.
func (p *Pulse) switches() (sum uint64, busy bool) {
	tasks := filepath.Join("/proc", strconv.Itoa(p.pid), "task")
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0, true
	}
	for _, thread := range threads {
		status, err := peek.File(filepath.Join(tasks, thread.Name(), "status"), statusMost)
		if err != nil {
			return 0, true
		}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.TrimSpace(value)
			switch name {
			case "State":
				if !strings.ContainsAny(value[:min(1, len(value))], "STt") { // sleeps, or is stopped
					return 0, true
				}
			case "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches":
				n, _ := strconv.ParseUint(value, 10, 64)
				sum += n
			}
		}
	}
	return sum, false
}
