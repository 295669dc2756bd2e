package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
	"github.com/weir-io/weir/internal/ui/text"
)

// A historyView is what the flags of weir history say.
type historyView struct {
	dir, since, until, svg string
	csv                    bool
}

func newHistory(out *cli.Out) *cobra.Command {
	v := historyView{}
	cmd := &cobra.Command{
		Use:   "history TARGET",
		Short: "Show what a target read and wrote, beside its limits, in the past",
		Long: "Show what a target read and wrote, beside its limits, from what weird metrics --history has recorded. TARGET is a name\n" +
			"as weir top shows it, also of a target that no longer exists. A container that was removed and created again under the\n" +
			"same name counts as one target.\n\n" +
			"weird records a point each second for 10 minutes, each 10 seconds for a day, and each minute for 30 days. weir\n" +
			"shows the finest points that go back to --since. A point each 10 seconds or each minute is the mean over that time.",
		Example: "  weir history docker:web --since 2h\n  weir history unit:db --since 03:00 --until 03:30 --svg db.svg\n  weir history cgroup:/batch --csv >batch.csv",
		Args:    cli.OneTarget,
		RunE:    func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), out, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&v.since, "since", "1h", "show what was read and written from this `TIME` on: how long ago (2h), a time of day (03:10), or a day and a time (\"2026-11-26 03:10\")")
	flags.StringVar(&v.until, "until", "0s", "show what was before this `TIME`, written as for --since; 0s is now")
	flags.BoolVar(&out.JSON, "json", false, "print one JSON document (docs/json.md)")
	flags.BoolVar(&v.csv, "csv", false, "print comma-separated values, one line for each point and device")
	flags.StringVar(&v.svg, "svg", "", "draw the charts into this `FILE` too")
	historyFlag(cmd, &v.dir, history.Dir)
	return cmd
}

// historyFlag adds the flag that says where history is.
func historyFlag(cmd *cobra.Command, into *string, usual string) {
	cmd.Flags().StringVar(into, "history", usual, "the `DIR` with the history that weird has recorded")
}

func (v historyView) run(ctx context.Context, out *cli.Out, target string) (err error) {
	now := time.Now()
	from, err := history.ParseWhen("--since", v.since, now)
	if err != nil {
		return err
	}
	to, err := history.ParseWhen("--until", v.until, now)
	if err != nil {
		return err
	}
	if !from.Before(to) {
		return cli.Usagef("--since %s is not before --until %s", v.since, v.until)
	}
	if v.csv && out.JSON {
		return cli.Usagef("--csv and --json cannot be combined; leave out one")
	}
	if err := svg.Check("--svg", v.svg); err != nil {
		return err
	}
	r, err := history.Open(v.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s, err := r.Series(ctx, target, from, to)
	if err != nil {
		return err
	}
	if v.svg != "" {
		if err := svg.History(v.svg, s); err != nil {
			return err
		}
	}
	switch {
	case out.JSON:
		return out.Document(api.HistoryOf(s, from, to))
	case v.csv:
		var b strings.Builder
		if err := text.HistoryCSV(&b, s); err != nil {
			return err
		}
		out.Text(b.String())
		return nil
	}
	text.History(out, s)
	return nil
}
