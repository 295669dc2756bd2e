package limiting

import (
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/act/pacer/pacertest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
)

// freezer are files of a copy of a host with cgroup v1 that has the freezer too.
func freezer() map[string]string {
	files := map[string]string{"sys/fs/cgroup/freezer/cgroup.procs": "",
		"proc/1/mountinfo": `21 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
24 21 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
27 24 0:27 / /sys/fs/cgroup/blkio rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,blkio
28 24 0:28 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,memory
30 24 0:30 / /sys/fs/cgroup/freezer rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,freezer
26 21 254:16 / /data rw,relatime - xfs /dev/vdb rw,inode64
`}
	for pid, group := range map[string]string{"1": "/", "self": "/", "4711": "/batch", "4712": "/batch/night", "4800": "/alone"} {
		files["proc/"+pid+"/cgroup"] = "4:freezer:" + group + "\n2:memory:" + group + "\n1:blkio:" + group + "\n"
	}
	return files
}

// A dry run shows what the pacer is asked: by a set that begins, changes or ends what it holds, and
// by a clear.
func TestADryRunTellsThePacer(t *testing.T) {
	off := limit.Limit{WBPS: limit.Unlimited}
	written, escaped := &pacer.Job{Count: pacer.CountWritten}, &pacer.Job{Count: pacer.CountEscaped}
	for _, c := range []struct {
		name, host string
		limit      limit.Limit // zero: a clear of /data
		was        *pacer.Job
		hold       limit.Hold
		blind      bool // BPF cannot see what escapes
		asks       int
	}{
		{name: "begin, v1", host: "v1", limit: wbps(5e6), hold: limit.HoldAuto, asks: 1},
		{name: "begin what escapes", host: "v2", limit: wbps(5e6), hold: limit.HoldAuto, asks: 1},
		{name: "nothing without BPF", host: "v2", limit: wbps(5e6), hold: limit.HoldAuto, blind: true},
		{name: "begin, v2", host: "v2", limit: wbps(5e6), hold: limit.HoldPacer, asks: 1},
		{name: "nothing by the kernel", host: "v1", limit: wbps(5e6), hold: limit.HoldKernel},
		{name: "change, v1", host: "v1", limit: wbps(6e6), was: written, hold: limit.HoldAuto, asks: 1},
		{name: "change what escapes", host: "v2", limit: wbps(6e6), was: escaped, hold: limit.HoldAuto, asks: 1},
		{name: "end, v1", host: "v1", limit: wbps(6e6), was: written, hold: limit.HoldKernel, asks: 1},
		{name: "one disk less, v1", host: "v1", limit: off, was: written, hold: limit.HoldAuto, asks: 1},
		{name: "clear a disk, v1", host: "v1", was: written, asks: 1},
		{name: "clear a disk, what escapes", host: "v2", was: escaped, asks: 1},
		{name: "clear a disk without the pacer", host: "v2"},
	} {
		var more map[string]string
		if c.host == "v1" {
			more = freezer()
		}
		m := manager(t, c.host, more, host.Options{})
		hosttest.Rehearse(t, m.Host)
		p := pacertest.Serve(t, m.Host.State)
		its, err := m.Host.Target(t.Context(), "cgroup:/batch")
		if err != nil {
			t.Fatal(err)
		}
		// Both disks are limited before.
		change, err := m.PrepareSetOn(t.Context(), its, Request{Asked: []limit.Asked{{Limit: wbps(8e6)}}, Hold: limit.HoldKernel})
		do(t, change, err)
		locked, err := m.Host.Lock(t.Context(), its)
		if err != nil {
			t.Fatal(err)
		}
		var action keep.Action
		if c.limit.IsZero() {
			on, err := m.Host.DevicesOf(t.Context(), []string{"/data"})
			if err != nil {
				t.Fatal(err)
			}
			l := &clearing{m: m, target: its, keeper: keep.Of(m.Host, its, its.Group.Hierarchy().Version), on: true, only: on}
			if _, err := l.forget(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := l.find(t.Context()); err != nil {
				t.Fatal(err)
			}
			action = &liftRules{l, locked, c.was}
		} else {
			// A copy has no pacer: what a host with one decides is put in the place of its decision.
			s := &setting{m: m, request: Request{Asked: onData(c.limit), Hold: limit.HoldKernel}}
			if err := s.prepare(t.Context(), its); err != nil {
				t.Fatal(err)
			}
			d, err := s.decide(t.Context(), locked)
			if err != nil {
				t.Fatal(err)
			}
			facts := d.what.Group
			if facts.NoPacer = nil; !c.blind {
				facts.Unseen = nil
			}
			if d.what, err = place.Decide(facts, s.places, c.hold); err != nil {
				t.Fatal(err)
			}
			rules := d.actions[len(d.actions)-1].(*setRules)
			rules.was = c.was
			d.plan.Pacing = &hold.Pacing{Before: c.was.Pacing(), Do: rules.pace}
			action = rules
		}
		steps, err := action.Steps(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if early, _ := p.Asked(); early != nil {
			t.Errorf("%s: a dry run asks for %+v", c.name, early)
		}
		var shown []hold.Pace
		for _, s := range steps {
			if s.Pace != nil {
				shown = append(shown, *s.Pace)
			}
		}
		if _, err := action.Do(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		locked.Unlock()
		asked, _ := p.Asked()
		if !reflect.DeepEqual(asked, shown) || len(asked) != c.asks {
			t.Errorf("%s: asked for\n%+v\nshown\n%+v", c.name, asked, shown)
		}
	}
}
