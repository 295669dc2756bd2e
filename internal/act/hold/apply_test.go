package hold

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/lab"
)

func TestSteps(t *testing.T) {
	lab.Unit(t)
	g := fixture(t, cgroupfs.V2, nil)
	sda, sdb := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	p := Plan{Group: g, Changes: []Change{
		{sda, limit.Limit{RBPS: limit.PerSecond(1), WIOPS: limit.Unlimited}},
		{sdb, limit.Limit{WBPS: limit.PerSecond(2)}},
		{sdb, limit.Limit{}},
	}}
	want := []Step{{File: g.File("io.max"), Line: "8:0 rbps=1 wiops=max"}, {File: g.File("io.max"), Line: "8:16 wbps=2"}}
	if got := p.Steps(); !reflect.DeepEqual(got, want) {
		t.Errorf("Steps = %+v, want %+v", got, want)
	}
	p.Unit = "x.service"
	want = []Step{{Unit: "x.service", Property: "IOReadBandwidthMax=/dev/block/8:0 1"}, {Unit: "x.service", Property: "IOWriteIOPSMax=/dev/block/8:0 infinity"},
		{Unit: "x.service", Property: "IOWriteBandwidthMax=/dev/block/8:16 2"}}
	if got := p.Steps(); !reflect.DeepEqual(got, want) {
		t.Errorf("Steps of a unit = %+v, want %+v", got, want)
	}
}

func TestApplyAsksNobodyWhereNothingCanBeWritten(t *testing.T) {
	lab.Unit(t)
	g := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/x/io.max": ""})
	h := Holder{Connect: func(context.Context) (*systemd.Conn, error) {
		t.Error("asked systemd")
		return nil, errors.New("not here")
	}}
	p := Plan{Group: g, Unit: "x.service", Changes: []Change{{blkdev.Number{Major: 8}, limit.Limit{RBPS: limit.PerSecond(1)}}}}
	if err := h.Apply(t.Context(), p); !fault.IsUnsupported(err) {
		t.Errorf("Apply on a fixture: %v", err)
	}
}
