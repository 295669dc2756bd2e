package machine

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/guest"
)

// errReset is why a guest ended that was reset.
var errReset = errors.New("reset")

// resettable reports whether tests may have the guest reset: all of them begin anew then, and what the
// guest itself has on disks of its own would be gone. A killed user-mode Linux has brought to its disks'
// files what it had written to the disks, and no more, as a machine whose button is pressed.
func (m Machine) resettable(job guest.Job) bool {
	return m.Carrier.Lane() == UML{}.Lane() && len(m.System) == 0 && job.Run != "" && len(job.Suites) == 1
}

// ordered hands lines of a console on, and calls reset at a random moment within the time that a line
// asks for.
func ordered(log func(string), reset func()) func(string) {
	return func(line string) {
		if _, text, is := strings.Cut(line, environ.ResetOrder); is {
			if within, err := time.ParseDuration(strings.TrimSpace(text)); err == nil && within > 0 {
				time.AfterFunc(rand.N(within), reset)
			}
		}
		if log != nil {
			log(line)
		}
	}
}
