package text

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// wrote compares what a function writes to both streams with what it should.
func wrote(t *testing.T, about string, f func(*cli.Out), messages, data string) {
	t.Helper()
	var said, printed bytes.Buffer
	f(&cli.Out{Data: &printed, Messages: &said})
	if said.String() != messages || printed.String() != data {
		t.Errorf("%s:\n%s%s---want\n%s%s", about, said.String(), printed.String(), messages, data)
	}
}

func TestVolumeMade(t *testing.T) {
	lab.Unit(t)
	write := limit.Limit{WBPS: limit.PerSecond(10e6)}
	made := space.Made{Volume: space.Volume{Volume: volume.Volume{Name: "data", Mount: "/srv/data", Image: "/v/data.img", FS: "ext4", Limit: write}, Up: true,
		Device: blkdev.Device{Node: "/dev/loop256"}, Size: 10 << 30}, Version: cgroupfs.V1, Ahead: 5e6, Bound: true, Strict: true}
	const first = "weir: volume data: 10.7 GB ext4 at /srv/data (/dev/loop256 on /v/data.img)\n"
	const others = "weir: direct and synchronous I/O of other groups needs a limit on those groups: weir set TARGET --write 10MB/s --on /srv/data\n"
	const applies = "weir: write 10 MB/s: applies to all writeback to it, and to processes in the root group (cgroup v1)\n"
	for _, c := range []struct {
		about  string
		change func(*space.Made)
		want   string
	}{
		{"on v1", func(*space.Made) {}, first + applies + "weir: at most 5.00 MB wait in memory, so writers are held too\n" + others},
		{"for a target", func(m *space.Made) { m.For = []string{"docker:web"} }, first + applies + "weir: at most 5.00 MB wait in memory, so writers are held too\n"},
		{"on an old kernel", func(m *space.Made) { m.Strict = false },
			first + applies + "weir: warning: this kernel cannot bound what waits in memory for one disk (Linux 6.2 can): the disk is held, but writers run ahead in memory\n" + others},
		{"of reads", func(m *space.Made) { m.Limit, m.Bound = limit.Limit{RBPS: limit.PerSecond(10e6)}, false },
			first + "weir: read 10 MB/s: applies to all writeback to it, and to processes in the root group (cgroup v1)\n" +
				"weir: note: without --write, nothing bounds what waits in memory for the volume: the disk is held, but writers run ahead in memory\n" +
				"weir: direct and synchronous I/O of other groups needs a limit on those groups: weir set TARGET --read 10MB/s --on /srv/data\n"},
		{"on v2", func(m *space.Made) { m.Version = cgroupfs.V2 },
			first + "weir: cgroup v2 has no limit for a whole disk; limit the targets that use it: weir set TARGET --write 10MB/s --on /srv/data\n"},
		{"on v2, for a target", func(m *space.Made) { m.Version, m.For = cgroupfs.V2, []string{"docker:web"} }, first},
		{"where nothing is limited", func(m *space.Made) { m.Version = 0 }, first},
		{"without a limit", func(m *space.Made) { m.Limit = limit.Limit{} }, first},
		{"adopted", func(m *space.Made) { m.Image, m.Version = "", 0 }, "weir: volume data: 10.7 GB ext4 at /srv/data (/dev/loop256)\n"},
		{"without direct I/O", func(m *space.Made) { m.Doubled, m.Version = true, 0 },
			first + "weir: warning: the file system of /v/data.img has no direct I/O: data of the volume is in memory twice, and limits on that disk do not apply to it\n"},
	} {
		m := made
		c.change(&m)
		wrote(t, c.about, func(out *cli.Out) { VolumeMade(out, m) }, c.want, "")
	}
}

func TestVolumes(t *testing.T) {
	lab.Unit(t)
	all := []space.Volume{
		{Volume: volume.Volume{Name: "data", Mount: "/srv/data", Image: "/v/data.img", Limit: limit.Limit{WBPS: limit.PerSecond(10e6)}}, Up: true, Device: blkdev.Device{Node: "/dev/loop256"}, Size: 1e9, Used: 5e6},
		{Volume: volume.Volume{Name: "old", Mount: "/srv/old"}},
		{Volume: volume.Volume{Name: "odd", Mount: "/srv/odd"}, Size: 1e9, Err: errors.New("volume odd: it is another file")},
	}
	wrote(t, "three volumes", func(out *cli.Out) { Volumes(out, all) }, "weir: volume odd: it is another file\n",
		"VOLUME  MOUNTED AT  DEVICE           SIZE     USED  LIMIT\n"+
			"data    /srv/data   /dev/loop256  1.00 GB  5.00 MB  write 10 MB/s\n"+
			"old     /srv/old    (down)                          no rate named\n"+
			"odd     /srv/odd    (see below)   1.00 GB           no rate named\n\n")
}

func TestQuotas(t *testing.T) {
	lab.Unit(t)
	all := []quota.Status{
		{Project: 65536, Target: "/srv/data", By: "weir", Mount: "/", FSType: "ext4", State: "set", Bounds: quota.Bounds{Bytes: 10e9, SoftFiles: 9}, Usage: quota.Usage{Bytes: 4096, Files: 2}},
		{Project: 7, By: "unknown", Mount: "/x", FSType: "xfs", State: "set"},
		{Project: 8, Target: "backup", By: "unknown", Mount: "/x", FSType: "xfs", State: "set"},
		{Project: 131072, Target: "docker:web", By: "weir", Mount: "/", FSType: "ext4", State: "interrupted"},
		{Project: 131073, Target: "docker:b", By: "weir", Mount: "/", State: "gone"},
		{Project: 131074, Target: "/c", By: "weir", Mount: "/m", State: "not mounted"},
		{Project: 131075, Target: "/d", By: "weir", Mount: "/", State: "under way"},
	}
	wrote(t, "all kinds", func(out *cli.Out) { Quotas(out, all) },
		"weir: docker:web: setting or clearing it was interrupted; repeat the command, or run weir quota clear docker:web\n"+
			"weir: docker:b: its directory is gone; to remove the quota, run weir quota clear 131073, or name the place that the directory was moved to\n"+
			"weir: /c: /m is not mounted, or mounted without prjquota\n"+
			"weir: /d: another weir is working on it\n",
		"QUOTA ON                USED  SOFT    LIMIT  FILES  SOFT  LIMIT  PROJECT\n"+
			"/srv/data            4.10 kB     -  10.0 GB      2     9      -  65536 on / (ext4)\n"+
			"(not weir's)             0 B     -        -      0     -      -  7 on /x (xfs)\n"+
			"backup (not weir's)      0 B     -        -      0     -      -  8 on /x (xfs)\n"+
			"docker:web               0 B     -        -      0     -      -  131072 on / (ext4)\n"+
			"docker:b                 0 B     -        -      0     -      -  131073 on /\n"+
			"/c                       0 B     -        -      0     -      -  131074 on /m\n"+
			"/d                       0 B     -        -      0     -      -  131075 on /\n\n")
	wrote(t, "none", func(out *cli.Out) { Quotas(out, nil) }, "", "")
}
