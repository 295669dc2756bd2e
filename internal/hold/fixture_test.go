package hold

import (
	"testing"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cgroupfs/cgrouptest"
)

// fixture opens a host of files, and its group x.
func fixture(t *testing.T, version cgroupfs.Version, files map[string]string) cgroupfs.Group {
	t.Helper()
	return cgrouptest.New(t, version, files).Group("/x")
}
