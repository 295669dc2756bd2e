package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/ui/text"
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
	quotas, err := a.openQuotas("show")
	if err != nil {
		return err
	}
	var all []quota.Status
	if len(args) == 0 {
		all, err = quotas.List(ctx)
	} else {
		all, err = quotas.Of(ctx, args[0])
	}
	if a.out.JSON {
		return errors.Join(err, a.out.Document(api.QuotaOf(all...)))
	}
	if len(all) == 0 && err == nil {
		a.out.Say("there is no quota; weir quota set makes one")
		return nil
	}
	text.Quotas(&a.out, all)
	return err
}

// completeQuota completes a container, or leaves it to the shell to complete a directory.
func (a *app) completeQuota(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if kind, ok := targets.KindOf(typed); ok && kind.Files {
		return a.completeTarget(cmd, args, typed)
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}
