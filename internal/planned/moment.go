package planned

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A moment is a time of one boot, which no setting of the clock moves.
type moment struct {
	Boot  string        `json:"boot"`  // random/boot_id of the host (random(4))
	Since time.Duration `json:"since"` // ns since that boot, time in suspend included (CLOCK_BOOTTIME)
}

// now is the present moment. Where the host has no number of its boot, two moments are compared by the
// time alone.
func now(root string) moment {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every kernel that weir runs on has it
	id := ownBoot
	if root != "/" {
		id = func() string { return bootOf(root) }
	}
	return moment{id(), time.Duration(t.Nano())}
}

// ownBoot is the number of this host's boot, which no process outlives.
var ownBoot = sync.OnceValue(func() string { return bootOf("/") })

func bootOf(root string) string {
	id, _ := os.ReadFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(id))
}

// after reports whether a moment came after another one of the same boot.
func (m moment) after(other moment) bool { return m.Boot == other.Boot && m.Since > other.Since }
