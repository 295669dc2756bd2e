package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newQuota(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Limit how much a directory or a container may store",
		Long: "Limit how much space and how many files a directory or a container may take. weir uses the project quotas of XFS and\n" +
			"ext4, which need the mount option prjquota. Where it is missing, weir says how to enable it.\n\n" +
			"On XFS a write beyond a hard limit fails with ENOSPC, also for root. On ext4 it fails with EDQUOT, but not for\n" +
			"processes with CAP_SYS_RESOURCE: root on the host has that capability, containers by default do not. Files cannot be\n" +
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

// openQuotas is for verbs that read or change quotas.
func (a *app) openQuotas(verb string) (space.Quotas, error) {
	if a.root != "/" {
		return space.Quotas{}, &fault.Unsupported{Feature: "quota " + verb + " with --root " + a.root, Reason: "quotas are this host's", Remedy: "leave out --root"}
	}
	if err := space.MayUseQuotas(verb); err != nil {
		return space.Quotas{}, err
	}
	if err := a.look(); err != nil {
		return space.Quotas{}, err
	}
	return space.Quotas{Host: a.host}, nil
}

func newQuotaSet(a *app) *cobra.Command {
	var o cli.Quota
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
	o.Register(cmd.Flags())
	a.dryFlag(cmd)
	cmd.ValidArgsFunction = a.completeQuota
	return cmd
}

func (a *app) quotaSet(ctx context.Context, spec, size string, o cli.Quota) error {
	change, err := o.Change(size)
	if err != nil {
		return err
	}
	quotas, err := a.openQuotas("set")
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	line := a.progress()
	defer line.Clear()
	request := space.QuotaRequest{Place: spec, Change: change, Force: o.Force}
	if a.dry {
		return a.shown("quota")(quotas.SetSteps(ctx, request, text.QuotaProgress(line)))
	}
	set, err := quotas.Set(ctx, request, text.QuotaProgress(line))
	line.Clear()
	var onVolume *space.OnVolumeError
	var none *fault.Unsupported
	switch {
	case errors.As(err, &onVolume):
		return cli.Usagef("%v: weir volume resize %s --size SIZE", err, onVolume.Volume)
	case errors.As(err, &none) && len(set.Dirs) > 0:
		a.out.Say("note: a volume limits space on every file system: weir volume create NAME --size %s", size)
		return err
	case err != nil:
		return err
	case a.out.JSON:
		return a.out.Document(api.QuotaSetOf(set.Status, set.Marked))
	}
	text.QuotaSet(&a.out, set.Status, set.Marked)
	return nil
}

// progress is a line on the terminal, or nil if weir is quiet.
func (a *app) progress() *cli.Progress {
	if a.out.Quiet {
		return cli.NewProgress(nil)
	}
	return cli.NewProgress(os.Stderr)
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
	a.dryFlag(cmd)
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
	quotas, err := a.openQuotas("clear")
	if err != nil {
		return err
	}
	switch {
	case a.dry && forget:
		return a.shown("quota")(quotas.ForgetSteps(ctx, spec))
	case a.dry:
		return a.shown("quota")(quotas.ClearSteps(ctx, spec))
	case forget:
		st, err := quotas.Forget(ctx, spec)
		if err != nil {
			return err
		}
		return a.saidQuota(st, "%s: removed the quota from weir's records; its disk is unchanged", st.Target)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	line := a.progress()
	defer line.Clear()
	st, left, err := quotas.Clear(ctx, spec, text.QuotaProgress(line))
	line.Clear()
	if space.IsInterrupted(err) {
		return fmt.Errorf("%w; run weir quota clear %s again to finish", err, cli.Quote(spec))
	}
	if err != nil {
		return err
	}
	text.QuotaLeft(&a.out, st, left)
	return a.saidQuota(st, "%s: removed the quota of %s", st.Target, st.Bounds)
}

// saidQuota ends a verb that lifted one.
func (a *app) saidQuota(st quota.Status, format string, args ...any) error {
	if a.out.JSON {
		return a.out.Document(api.QuotaOf(st))
	}
	a.out.Say(format, args...)
	return nil
}
