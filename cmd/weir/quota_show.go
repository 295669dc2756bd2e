package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/quota"
	"github.com/weir-io/weir/internal/target"
)

func newQuotaShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [DIR|TARGET]",
		Short: "Show quotas, and how much of them is used",
		Long: "Show how much a directory or a container may store, and how much it stores now. Without an argument, show all project\n" +
			"quotas on this host, whoever set them.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneQuota(cmd, args)
		},
		RunE:              func(cmd *cobra.Command, args []string) error { return a.quotaShow(cmd.Context(), args) },
		ValidArgsFunction: a.completeQuota,
	}
}

func (a *app) quotaShow(ctx context.Context, args []string) error {
	if err := a.openQuotas("show"); err != nil {
		return err
	}
	var all []quota.Status
	var err error
	if len(args) == 0 {
		all, err = a.quotas().List(ctx)
	} else {
		all, err = a.quotaOf(ctx, args[0])
	}
	if a.out.JSON {
		if all == nil {
			all = []quota.Status{}
		}
		return errors.Join(err, a.out.Document(quotaDocument{Schema: cli.SchemaOf("quota"), Quotas: all}))
	}
	if len(all) == 0 && err == nil {
		a.out.Say("there is no quota; weir quota set makes one")
		return nil
	}
	a.printQuotas(all)
	return err
}

// quotaOf finds the quota that a directory or a container is in, or the recorded quota of one
// that is not running.
func (a *app) quotaOf(ctx context.Context, spec string) ([]quota.Status, error) {
	p, err := a.quotaPlace(ctx, spec)
	var stopped *target.StoppedError
	if errors.As(err, &stopped) {
		all, err := a.quotas().List(ctx)
		for _, st := range all {
			if st.Lasting != "" && st.Lasting == stopped.Lasting {
				return []quota.Status{st}, nil
			}
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	st, err := a.quotas().Of(ctx, p.Dirs[0])
	if err != nil || st.Project == 0 {
		return nil, err
	}
	if st.Target == "" {
		st.Target = spec
	}
	return []quota.Status{st}, nil
}

func (a *app) printQuotas(all []quota.Status) {
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"QUOTA ON", "USED", "SOFT", "LIMIT", "FILES", "SOFT", "LIMIT", "PROJECT"}}
	for _, st := range all {
		name := st.Target
		if name == "" {
			name = "(not weir's)"
		} else if st.By != "weir" {
			name += " (not weir's)"
		}
		project := fmt.Sprintf("%d on %s", st.Project, st.Mount)
		if st.FSType != "" {
			project += " (" + st.FSType + ")"
		}
		rows = append(rows, []string{name, quota.Size(st.Usage.Bytes), orDash(st.Bounds.SoftBytes, quota.Size), orDash(st.Bounds.Bytes, quota.Size),
			strconv.FormatUint(st.Usage.Files, 10), orDash(st.Bounds.SoftFiles, decimalOf), orDash(st.Bounds.Files, decimalOf), project})
	}
	a.out.Print("%s", cli.Table(rows, 1, 2, 3, 4, 5, 6))
	for _, st := range all {
		switch st.State {
		case "interrupted":
			a.out.Say("%s: setting or clearing it was interrupted; repeat the command, or run weir quota clear %s", st.Target, st.Target)
		case "under way":
			a.out.Say("%s: another weir is working on it", st.Target)
		case "gone":
			a.out.Say("%s: its directory is gone; to remove the quota, run weir quota clear %d, or name the place that the directory was moved to", st.Target, st.Project)
		case "not mounted":
			a.out.Say("%s: %s is not mounted, or mounted without prjquota", st.Target, st.Mount)
		}
	}
}

func decimalOf(n uint64) string { return strconv.FormatUint(n, 10) }

func orDash(n uint64, spell func(uint64) string) string {
	if n == 0 {
		return "-"
	}
	return spell(n)
}

// spaceOf is the quota that a target's files are in, for weir show; none if it is not known.
func (a *app) spaceOf(ctx context.Context, t target.Target) *quota.Status {
	if a.root != "/" || kindOf(t.String(), withFiles) == "" {
		return nil
	}
	p, err := a.containerPlace(t)
	if err != nil {
		return nil
	}
	st, err := a.quotas().Of(ctx, p.Dirs[0])
	if err != nil || st.Bounds == (quota.Bounds{}) {
		return nil
	}
	return &st
}
