package text

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/ui/cli"
)

func TestMoves(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/batch/cgroup.procs": ""})
	job := mend.Job{Into: h.Group("/batch"), File: inode.File{Path: "/data/log", Inode: 12, Device: blkdev.Number{Major: 8, Minor: 1},
		Owner: inode.Owner{State: inode.Owned, IO: inode.Group{Path: "/web"}}}}
	for want, print := range map[string]func(*cli.Out){
		"move the writeback of /data/log (inode 12 of 8:1) from cgroup /web to cgroup /batch\n": func(out *cli.Out) { Moves(out, []mend.Job{job}) },
		"weir: no file to move\n": func(out *cli.Out) { Moving(out, nil) },
		"weir: moving the writeback of 2 files; this changes their mtime and ctime, and drops their clean pages from the page cache\n": func(out *cli.Out) { Moving(out, []mend.Job{job, job}) },
		"weir: /data/log: charged to cgroup /batch now, and no longer to cgroup /web (1.5 s)\n": func(out *cli.Out) {
			Moved(out, job, mend.Result{Mended: inode.Mended{Took: 1500 * time.Millisecond}})
		},
		"weir: /data/log: not moved: it is open for direct I/O\n": func(out *cli.Out) { Moved(out, job, mend.Result{Refused: "it is open for direct I/O"}) },
	} {
		var all strings.Builder
		out := cli.Out{Data: &all, Messages: &all}
		if print(&out); all.String() != want {
			t.Errorf("%q, want %q", all.String(), want)
		}
	}
}
