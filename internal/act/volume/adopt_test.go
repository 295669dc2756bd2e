package volume

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// An adopted mount's device gets the limit, and what it had before when it is deleted.
func TestAdopt(t *testing.T) {
	s, m := newStore(t, cgroupfs.V1)
	dev := blkdev.Number{Major: 254, Minor: 16}
	must(t, m.rule(filepath.Join(m.host.Root, "sys/fs/cgroup/blkio/blkio.throttle.write_bps_device"), dev.String()+" 77"))
	at := filepath.Join(m.dir, "disk")
	l := limit.Limit{WBPS: limit.PerSecond(20e6)}
	v, strict, err := s.Adopt(t.Context(), at, l, []string{"unit:x.service"})
	if err != nil || !strict || v.FS != "xfs" || v.Device != dev || !v.Adopted() || m.rules("write_bps") != dev.String()+" 20000000" || m.bdi(dev, "max_bytes") != "10000000" {
		t.Fatalf("%+v, %v; %q", v, err, m.rules("write_bps"))
	}
	for about, err := range map[string]error{
		"again":     third(s.Adopt(t.Context(), at, l, nil)),
		"down":      lone(s.Down(t.Context(), v.Name)),
		"resized":   lone(s.Resize(t.Context(), v.Name, 1<<30)),
		"the host":  third(s.Adopt(t.Context(), "/", l, nil)),
		"no mount":  third(s.Adopt(t.Context(), m.bin, l, nil)),
		"no limits": third((Store{Dir: s.Dir, WhyNone: s.WhyNone}).Adopt(t.Context(), at, l, nil)),
	} {
		if err == nil {
			t.Errorf("%s: no error", about)
		}
	}
	if _, _, err := s.Up(t.Context(), v.Name, false); err != nil {
		t.Errorf("up: %v", err)
	}
	m.others[2] = strings.Replace(m.others[2], "254:16", "254:0", 1) // after a boot it has another device
	m.others[1] = strings.Replace(m.others[1], "254:0", "254:48", 1)
	m.show()
	if v, _, err = s.Up(t.Context(), v.Name, false); err != nil || v.Device != (blkdev.Number{Major: 254}) || v.Before.Root.Bound() != (limit.Limit{}) {
		t.Errorf("up on another device: %+v, %v", v, err)
	}
	if _, err := s.Delete(t.Context(), v.Name); err != nil || !strings.Contains(m.rules("write_bps"), dev.String()) || strings.Contains(m.rules("write_bps"), "254:0 ") || m.bdi(blkdev.Number{Major: 254}, "strict_limit") != "0" {
		t.Errorf("deleted: %v; %q", err, m.rules("write_bps"))
	}
	m.others = m.others[:2]
	m.show()
	if err := s.save(v, ready); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Up(t.Context(), v.Name, false); err == nil || !strings.Contains(err.Error(), "nothing is mounted at") {
		t.Errorf("up without its mount: %v", err)
	}
}

func third(_ Volume, _ bool, err error) error { return err }
func lone(_ Volume, err error) error          { return err }

// A device that others use is not a volume's own.
func TestAdoptRefuses(t *testing.T) {
	s, m := newStore(t, cgroupfs.V2)
	at := filepath.Join(m.dir, "disk")
	mounts := m.others
	for about, c := range map[string]struct {
		mounts []string
		swaps  string
		want   string
	}{
		"part of a file system": {mounts: []string{mounts[0], mounts[1], strings.Replace(mounts[2], " / ", " /sub ", 1)}, want: "is only part of a file system"},
		"btrfs":                 {mounts: []string{mounts[0], mounts[1], "31 23 0:44 / " + at + " rw - btrfs /dev/vdb rw\n"}, want: "does not count its dirty pages by device"},
		"the root's device":     {mounts: []string{mounts[0], strings.Replace(mounts[1], "254:0", "254:16", 1), mounts[2]}, want: "is also mounted at /"},
		"swap":                  {mounts: mounts, swaps: "/dev/vdb partition 1024 0 -2\n", want: "swap /dev/vdb is also on its device"},
	} {
		m.others = c.mounts
		m.show()
		m.host.Write("proc/swaps", "Filename Type Size Used Priority\n"+c.swaps)
		m.host.Write("dev/vdb", "")
		if _, _, err := s.Adopt(t.Context(), at, limit.Limit{WBPS: limit.PerSecond(1e6)}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", about, err, c.want)
		}
	}
}
