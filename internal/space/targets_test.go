package space

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// The targets of a volume get its limit on the device that it is mounted from, one after the
// other, up to the first that cannot have it.
func TestLimitTargets(t *testing.T) {
	lab.Unit(t)
	for name, want := range map[string]string{
		"v1": "/blkio/batch/blkio.throttle.write_bps_device 254:16 5000000",
		"v2": "/batch/io.max 254:16 wbps=5000000",
	} {
		h := hosttest.Open(t, name, nil, host.Options{})
		kernel := hosttest.Rehearse(t, h)
		v := Volumes{Host: h}
		of := Volume{Volume: volume.Volume{Name: "data", Mount: "/data", For: []string{"cgroup:/batch", "cgroup:/none", "cgroup:/alone"}}}
		all := v.LimitTargets(t.Context(), of, limit.Limit{WBPS: limit.PerSecond(5e6)}, false)
		if len(all) != 2 || all[0].Err != nil || all[0].Result.Target != "cgroup:/batch" || fault.ClassOf(all[1].Err) != fault.NotFound {
			t.Errorf("%s: %+v", name, all)
		}
		if len(kernel.Writes) != 1 || !strings.HasSuffix(kernel.Writes[0].File+" "+kernel.Writes[0].Line, want) {
			t.Errorf("%s: written is %+v, want %s", name, kernel.Writes, want)
		}
		if all := v.LimitTargets(t.Context(), of, limit.Limit{}, false); all != nil {
			t.Errorf("%s: without a limit: %+v", name, all)
		}
	}
}

// The units of a boot wait for the disks of all volumes.
func TestBootUnits(t *testing.T) {
	lab.Unit(t)
	all := []volume.Volume{{Mount: "/srv/data", Image: "/disk/data.img"}, {Mount: "/srv/adopted"}}
	if got, want := pathsOf(all), []string{volume.Dir, "/srv/data", "/disk/data.img", "/srv/adopted"}; !slices.Equal(got, want) {
		t.Errorf("volumes need %q, want %q", got, want)
	}
	b := Boot{Host: hosttest.Open(t, "v2", nil, host.Options{}), Program: func() (string, error) { return "/opt/weir", nil }}
	texts, err := b.texts()
	if err != nil || len(texts) != 2 || !strings.Contains(texts[VolumesUnit], "/opt/weir\" volume up") && !strings.Contains(texts[VolumesUnit], "/opt/weir volume up") || !strings.Contains(texts[LimitsUnit], "volume up") {
		t.Errorf("%q, %v", texts, err)
	}
	lost := errors.New("weir is not to be found")
	b.Program = func() (string, error) { return "", lost }
	if err := b.Install(t.Context()); !errors.Is(err, lost) {
		t.Errorf("without a program: %v", err)
	}
}
