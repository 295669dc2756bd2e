package text

import (
	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Moves prints the files that would be moved.
func Moves(out *cli.Out, jobs []mend.Job) {
	for _, j := range jobs {
		out.Print("move the writeback of %s (inode %d of %s) from %s to cgroup %s", why.Name(j.File), j.File.Inode, j.File.Device, why.Whose(j.File.Owner), j.Into.Path())
	}
}

// Moving says that files are about to be moved, and what that changes.
func Moving(out *cli.Out, jobs []mend.Job) {
	if len(jobs) == 0 {
		out.Say("no file to move")
		return
	}
	out.Say("moving the writeback of %s; this changes their mtime and ctime, and drops their clean pages from the page cache", cli.Plural(len(jobs), "file", "files"))
}

// Moved says what came of one file.
func Moved(out *cli.Out, j mend.Job, r mend.Result) {
	if r.Refused != "" {
		out.Say("%s: not moved: %s", why.Name(j.File), r.Refused)
		return
	}
	out.Say("%s: charged to cgroup %s now, and no longer to %s (%.1f s)", why.Name(j.File), j.Into.Path(), why.Whose(j.File.Owner), r.Mended.Took.Seconds())
}
