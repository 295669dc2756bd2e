package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/quota"
)

func newQuota(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Limit how much a directory or a container may store",
		Long: "Limit how much space and how many files a directory or a container may take. weir uses the project quotas of XFS and\n" +
			"ext4, which need the mount option prjquota. Where it is missing, weir says how to enable it.\n\n" +
			"On XFS a write beyond a hard limit fails with ENOSPC, also for root. On ext4 it fails with EDQUOT, and processes with\n" +
			"CAP_SYS_RESOURCE are not bound: root on the host has that capability, containers by default do not. Files cannot be\n" +
			"hard-linked into the directory (EXDEV), so mv copies them. In the directory, df shows the limit as the size. A volume\n" +
			"needs no quota, because it has a size of its own (weir volume resize).\n\n" +
			"The owner of a file can take it out of the project (chattr -p), except from inside a user namespace. So a quota\n" +
			"protects against accidents; a volume protects against everybody.",
		Args: cli.NoSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newQuotaSet(a), newQuotaShow(a), newQuotaClear(a))
	return cmd
}

// quotas are this host's.
func (a *app) quotas() quota.Store {
	return quota.Store{Dir: quota.Dir, Devices: blkdev.New("/"), Names: "/etc/projid"}
}

// openQuotas is for verbs that read or change quotas.
func (a *app) openQuotas(verb string) error {
	if a.root != "/" {
		return &cgroupfs.Unsupported{Feature: "quota " + verb + " with --root " + a.root, Reason: "quotas are this host's", Remedy: "leave out --root"}
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("quota %s: permission denied (the kernel shows and sets project quotas only for root; run weir as root)", verb)
	}
	return nil
}

// quotaDocument is the JSON of weir quota (docs/json.md).
type quotaDocument struct {
	cli.Schema
	Quotas []quota.Status `json:"quotas"`
	Marked *quota.Marked  `json:"marked,omitempty"` // by set, if it went through the tree
}

// quotaOptions are the flags of weir quota set.
type quotaOptions struct {
	files, soft, softFiles string
	force                  bool
}

func newQuotaSet(a *app) *cobra.Command {
	var o quotaOptions
	cmd := &cobra.Command{
		Use:   "set DIR|TARGET SIZE",
		Short: "Set the quota of a directory or a container",
		Long: "Limit what a directory and everything below it may take, or the files that a container (docker:, podman:, containerd:)\n" +
			"changes in its image. The container's volumes do not count. Existing files count. SIZE is 10GiB, 500MB, a number of\n" +
			"bytes, or max for no limit of space. If there is a quota already, only the values that you name change.",
		Example: "  weir quota set /srv/data 10GiB\n  weir quota set /srv/data 10GiB --files 100k --soft 9GiB\n  weir quota set docker:web 500MB",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("quota set: a directory or a container, and a size are needed, such as /srv/data 10GiB; %s given", cli.Plural(len(args), "argument", "arguments"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.quotaSet(cmd.Context(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.files, "files", "", "allow at most `N` files and directories; max: no limit")
	f.StringVar(&o.soft, "soft", "", "a `SIZE` that may be exceeded only for the grace time of the file system (usually a week)")
	f.StringVar(&o.softFiles, "soft-files", "", "a number `N` of files that may be exceeded only for the grace time")
	f.BoolVar(&o.force, "force", false, "set the quota even if more is stored already")
	cmd.ValidArgsFunction = a.completeQuota
	return cmd
}

// change reads the requested values.
func (o quotaOptions) change(size string) (c quota.Change, err error) {
	for _, one := range []struct {
		text  string
		to    **uint64
		parse func(string) (uint64, error)
	}{{size, &c.Bytes, limit.ParseSize}, {o.soft, &c.SoftBytes, limit.ParseSize}, {o.files, &c.Files, limit.ParseCount}, {o.softFiles, &c.SoftFiles, limit.ParseCount}} {
		var n uint64
		switch one.text {
		case "":
			continue
		case "max":
		default:
			if n, err = one.parse(one.text); err != nil {
				return c, err
			}
		}
		*one.to = &n
	}
	return c, nil
}

func (a *app) quotaSet(ctx context.Context, spec, size string, o quotaOptions) (err error) {
	if size == "" {
		return cli.Usagef("quota set: the size is empty; write 10GiB, 500MB or max")
	}
	change, err := o.change(size)
	if err != nil {
		return err
	}
	if err := a.openQuotas("set"); err != nil {
		return err
	}
	place, err := a.quotaPlace(ctx, spec)
	if err != nil {
		return err
	}
	defer func() {
		var none *cgroupfs.Unsupported
		if errors.As(err, &none) {
			a.out.Say("note: a volume limits space on every file system: weir volume create NAME --size %s", size)
		}
	}()
	s := a.quotas()
	if err := a.refuseVolume(ctx, s, spec, place); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	line := a.progress()
	defer line.Clear()
	st, marked, err := s.Set(ctx, place, change, o.force, tellQuota(line))
	line.Clear()
	if err != nil {
		return err
	}
	if a.out.JSON {
		doc := quotaDocument{Schema: cli.SchemaOf("quota"), Quotas: []quota.Status{st}}
		if marked.Files > 0 {
			doc.Marked = &marked
		}
		return a.out.Document(doc)
	}
	a.sayQuota(st, marked)
	return nil
}

// progress is a line on the terminal, or nil if weir is quiet.
func (a *app) progress() *cli.Progress {
	if a.out.Quiet {
		return cli.NewProgress(nil)
	}
	return cli.NewProgress(os.Stderr)
}

func tellQuota(line *cli.Progress) quota.Progress {
	return func(what string, files, of int) {
		if of == 0 {
			line.Show(fmt.Sprintf("%s files: %d", what, files), 0)
			return
		}
		line.Show(fmt.Sprintf("%s files: %d of %d", what, files, of), min(1, float64(files)/float64(of)))
	}
}

// sayQuota says what the quota does from now on.
func (a *app) sayQuota(st quota.Status, marked quota.Marked) {
	a.out.Say("%s: at most %s (project %d on %s, %s); it has %s and %s now", st.Target, st.Bounds, st.Project, st.Mount, st.FSType,
		quota.Size(st.Usage.Bytes), cli.Plural(int(st.Usage.Files), "file", "files"))
	if st.FSType == "xfs" {
		a.out.Say("a write beyond it fails with ENOSPC, also for root; mv from elsewhere on %s copies, and ln is refused (EXDEV)", st.Mount)
	} else {
		a.out.Say("a write beyond it fails with EDQUOT, but ext4 does not limit processes with CAP_SYS_RESOURCE, such as root's; mv from elsewhere on %s copies, and ln is refused (EXDEV)", st.Mount)
	}
	if marked.Foreign > 0 {
		a.out.Say("note: %s in other projects, and not counted here", cli.Plural(marked.Foreign, "file or directory is", "files and directories are"))
	}
	if marked.Unable > 0 {
		a.out.Say("note: %s not counted: the kernel cannot mark symbolic links, special files and immutable files (on XFS from Linux 6.17 on only immutable ones); these cannot be renamed or hard-linked there (EXDEV)", cli.Plural(marked.Unable, "file is", "files are"))
	}
}

func newQuotaClear(a *app) *cobra.Command {
	forget := false
	cmd := &cobra.Command{
		Use:   "clear DIR|TARGET",
		Short: "Remove a quota that weir set",
		Long: "Remove the quota of a directory or a container, and take all its files out of the project. This also completes a set\n" +
			"or a clear that was interrupted. If the directory or the container no longer exists, name it as before (docker:web),\n" +
			"or give the number of its project.",
		Args:              oneQuota,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.quotaClear(cmd.Context(), args[0], forget) },
		ValidArgsFunction: a.completeQuota,
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "remove only weir's record, for a disk that is gone")
	return cmd
}

func oneQuota(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("quota %s: one directory or container is needed, such as /srv/data or docker:web; %d given", cmd.Name(), len(args))
	}
	return nil
}

func (a *app) quotaClear(ctx context.Context, spec string, forget bool) error {
	if err := a.openQuotas("clear"); err != nil {
		return err
	}
	place, err := a.quotaOnRecord(ctx, spec)
	if err != nil {
		return err
	}
	if forget {
		st, err := a.quotas().Forget(ctx, place)
		if err != nil {
			return err
		}
		return a.saidQuota(st, "%s: removed the quota from weir's records; its disk is unchanged", st.Target)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	line := a.progress()
	defer line.Clear()
	st, left, err := a.quotas().Clear(ctx, place, tellQuota(line))
	line.Clear()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("%w; run weir quota clear %s again to finish", err, spec)
		}
		return err
	}
	if left > 0 {
		a.out.Say("note: %s still in project %d, which has no limit now: symbolic links and special files, which the kernel cannot unmark (on XFS from Linux 6.17 on it can), or files that were moved out of the directory", cli.Plural(int(left), "file is", "files are"), st.Project)
	}
	return a.saidQuota(st, "%s: removed the quota of %s", st.Target, st.Bounds)
}

// saidQuota ends a verb that lifted one.
func (a *app) saidQuota(st quota.Status, format string, args ...any) error {
	if a.out.JSON {
		return a.out.Document(quotaDocument{Schema: cli.SchemaOf("quota"), Quotas: []quota.Status{st}})
	}
	a.out.Say(format, args...)
	return nil
}
