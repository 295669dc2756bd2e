package text

import (
	"fmt"
	"strconv"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/ui/cli"
)

// QuotaSet says what a quota does from now on.
func QuotaSet(out *cli.Out, st quota.Status, marked quota.Marked) {
	out.Say("%s: at most %s (project %d on %s, %s); it has %s and %s now", st.Target, st.Bounds, st.Project, st.Mount, st.FSType,
		quota.Size(st.Usage.Bytes), cli.Plural(int(st.Usage.Files), "file", "files"))
	if st.FSType == "xfs" {
		out.Say("a write beyond it fails with ENOSPC, also for root; mv from elsewhere on %s copies, and ln is refused (EXDEV)", st.Mount)
	} else {
		out.Say("a write beyond it fails with EDQUOT, but ext4 does not limit processes with CAP_SYS_RESOURCE, such as root's; mv from elsewhere on %s copies, and ln is refused (EXDEV)", st.Mount)
	}
	if marked.Foreign > 0 {
		out.Say("note: %s in other projects, and not counted here", cli.Plural(marked.Foreign, "file or directory is", "files and directories are"))
	}
	if marked.Unable > 0 {
		out.Say("note: %s not counted: the kernel cannot mark symbolic links, special files and immutable files (on XFS from Linux 6.17 on only immutable ones); these cannot be renamed or hard-linked there (EXDEV)", cli.Plural(marked.Unable, "file is", "files are"))
	}
}

// QuotaLeft says which files stay in the project of a quota that was cleared.
func QuotaLeft(out *cli.Out, was quota.Status, left uint64) {
	if left > 0 {
		out.Say("note: %s still in project %d, which has no limit now: symbolic links and special files, which the kernel cannot unmark (on XFS from Linux 6.17 on it can), or files that were moved out of the directory", cli.Plural(int(left), "file is", "files are"), was.Project)
	}
}

// QuotaProgress shows how far marking or unmarking files has come.
func QuotaProgress(line *cli.Progress) quota.Progress {
	return func(what string, files, of int) {
		if of == 0 {
			line.Show(fmt.Sprintf("%s files: %d", what, files), 0)
			return
		}
		line.Show(fmt.Sprintf("%s files: %d of %d", what, files, of), min(1, float64(files)/float64(of)))
	}
}

// Quotas prints a table of quotas, and says what is to be done about some.
func Quotas(out *cli.Out, all []quota.Status) {
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"QUOTA ON", "USED", "SOFT", "LIMIT", "FILES", "SOFT", "LIMIT", "PROJECT"}}
	for _, st := range all {
		rows = append(rows, []string{quotaName(st), quota.Size(st.Usage.Bytes), orDash(st.Bounds.SoftBytes, quota.Size), orDash(st.Bounds.Bytes, quota.Size),
			decimal(st.Usage.Files), orDash(st.Bounds.SoftFiles, decimal), orDash(st.Bounds.Files, decimal), projectOf(st)})
	}
	out.Text(cli.Table(rows, 1, 2, 3, 4, 5, 6) + "\n")
	for _, st := range all {
		switch st.State {
		case "interrupted":
			out.Say("%s: setting or clearing it was interrupted; repeat the command, or run weir quota clear %s", st.Target, cli.Quote(st.Target))
		case "under way":
			out.Say("%s: another weir is working on it", st.Target)
		case "gone":
			out.Say("%s: its directory is gone; to remove the quota, run weir quota clear %d, or name the place that the directory was moved to", st.Target, st.Project)
		case "not mounted":
			out.Say("%s: %s is not mounted, or mounted without prjquota", st.Target, st.Mount)
		}
	}
}

func quotaName(st quota.Status) string {
	switch {
	case st.Target == "":
		return "(not weir's)"
	case st.By != "weir":
		return st.Target + " (not weir's)"
	}
	return st.Target
}

func projectOf(st quota.Status) string {
	project := fmt.Sprintf("%d on %s", st.Project, st.Mount)
	if st.FSType != "" {
		project += " (" + st.FSType + ")"
	}
	return project
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func orDash(n uint64, spell func(uint64) string) string {
	if n == 0 {
		return "-"
	}
	return spell(n)
}
