package planned

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// What a plan has put into force is told by a target's permanent name; a damaged record tells nothing.
func TestSetFor(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	one := deviceRule{Device: blkdev.Number{Major: 8}, Limit: limit.Limit{WBPS: limit.PerSecond(5)}}
	r := &record{Target: "docker:1", Name: "docker:web", Plan: "small", Limits: []deviceRule{one}}
	if err := r.save(h.Root); err != nil {
		t.Fatal(err)
	}
	of := SetFor(h)
	if got := of(targets.Target{Lasting: "docker:1"}); len(got) != 1 || got[0].Device != one.Device || got[0].Limit != one.Limit {
		t.Errorf("%+v", got)
	}
	for _, lasting := range []string{"", "docker:2"} {
		if got := of(targets.Target{Lasting: lasting}); got != nil {
			t.Errorf("%q: %+v", lasting, got)
		}
	}
	if err := os.WriteFile(filepath.Join(h.Root, records, fileOf("docker:1")), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := of(targets.Target{Lasting: "docker:1"}); got != nil {
		t.Errorf("damaged: %+v", got)
	}
}
