package text

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
)

// VolumeMade says where a volume is that was brought up or changed, and what its limit holds.
func VolumeMade(out *cli.Out, v space.Made) {
	on := ""
	if v.Image != "" {
		on = " on " + v.Image
	}
	out.Say("volume %s: %s %s at %s (%s%s)", v.Name, limit.FormatMeasured(float64(v.Size)), v.FS, v.Mount, v.Device.Node, on)
	if v.Doubled {
		out.Say("warning: the file system of %s has no direct I/O: data of the volume is in memory twice, and limits on that disk do not apply to it", v.Image)
	}
	if !v.Limit.Bounds() || v.Version == 0 {
		return
	}
	flags := cli.Flags(limit.Asked{On: v.Mount, Limit: v.Limit})
	if v.Version == cgroupfs.V2 {
		if len(v.For) == 0 {
			out.Say("cgroup v2 has no limit for a whole disk; limit the targets that use it: weir set TARGET %s", flags)
		}
		return
	}
	out.Say("%s: applies to all writeback to it, and to processes in the root group (cgroup v1)", v.Limit)
	switch {
	case v.Bound && v.Strict:
		out.Say("at most %s wait in memory, so writers are held too", limit.FormatMeasured(float64(v.Ahead)))
	case v.Bound:
		out.Say("warning: this kernel cannot bound what waits in memory for one disk (Linux 6.2 can): the disk is held, but writers run ahead in memory")
	default:
		out.Say("note: without --write, nothing bounds what waits in memory for the volume: the disk is held, but writers run ahead in memory")
	}
	if len(v.For) == 0 {
		out.Say("direct and synchronous I/O of other groups needs a limit on those groups: weir set TARGET %s", flags)
	}
}

// Volumes prints a table of volumes, after what is wrong with some.
func Volumes(out *cli.Out, all []space.Volume) {
	rows := [][]string{{"VOLUME", "MOUNTED AT", "DEVICE", "SIZE", "USED", "LIMIT"}}
	for _, v := range all {
		at, size, used := v.Device.Node, "", ""
		switch {
		case v.Err != nil:
			at = "(see below)"
		case !v.Up:
			at = "(down)"
		default:
			used = limit.FormatMeasured(float64(v.Used))
		}
		if v.Size > 0 {
			size = limit.FormatMeasured(float64(v.Size))
		}
		rows = append(rows, []string{v.Name, v.Mount, at, size, used, v.Limit.String()})
		if v.Err != nil {
			out.Say("%s", Error(v.Err))
		}
	}
	out.Text(cli.Table(rows, 3, 4) + "\n")
}
