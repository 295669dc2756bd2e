package place

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Pacing returns how the pacer has to hold a group by a decision; nil: it has to release it. On
// v2 systemd keeps the limit of a unit over its restarts, and the pacer has to hold the unit's
// next group too.
func (h Host) Pacing(d Decision, unit string) (*limit.Pacing, error) {
	how := &limit.Pacing{Count: pacer.CountWritten}
	switch {
	case d.Paced == nil && d.Escapes == nil:
		return nil, nil
	case d.Paced == nil:
		how.Count = pacer.CountEscaped
	}
	if unit == "" || d.Group.Version == cgroupfs.V1 {
		return how, nil
	}
	var err error
	if how.KeptIn, err = systemd.KeptIn(h.Root, unit); err != nil {
		return nil, err
	}
	own := filepath.Join(h.Root, dropin.Path(unit)) // which a scope has on v2
	if _, err := os.Lstat(own); err == nil && strings.HasSuffix(unit, ".scope") {
		how.KeptIn = append(how.KeptIn, own)
	}
	return how, nil
}
