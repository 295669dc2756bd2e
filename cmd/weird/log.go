package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/routes"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// journalFlag is the flag that says where the journal is.
func journalFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "journal", "", "the `DIR` with the journal of changes; by default "+journal.Dir)
}

// journalDir is where the journal is.
func journalDir(root, asked string) string {
	if asked != "" {
		return asked
	}
	return filepath.Join(root, journal.Dir)
}

// A logView is what the flags of weird log say.
type logView struct{ dir, since, root string }

func newLog(out *cli.Out) *cobra.Command {
	v := logView{}
	cmd := &cobra.Command{
		Use:   "log [TARGET]",
		Short: "Show what weird run has changed, and what it saw others change",
		Long: "Show each change of limits with its time, who made it, the limits before and after, and why. Other programs that\n" +
			"changed limits are \"other\": the kernel does not say which program it was. With TARGET, show the changes of that\n" +
			"target alone, by the name that weird status shows; it need not exist any more.\n\n" +
			"The journal has at least the last 4 MB of changes, about 15,000, and never more than 8 MB. It stays when weird ends.\n" +
			"weird need not run.",
		Example: "  weird log\n  weird log docker:web --since 2h\n  weird log --since 03:00 --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("log: %q: too many arguments; see weird log --help", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return v.show(cmd.Context(), out, args) },
	}
	journalFlag(cmd, &v.dir)
	cmd.Flags().StringVar(&v.since, "since", "", "show changes from this `TIME` on: how long ago (2h), a time of day (03:10), or a day and a time (\"2026-11-26 03:10\")")
	cmd.Flags().StringVar(&v.root, "root", "/", "read the journal below `DIR`")
	cmd.Flags().BoolVar(&out.JSON, "json", false, "print one JSON document (docs/json.md)")
	return cmd
}

func (v logView) show(ctx context.Context, out *cli.Out, args []string) error {
	q := journal.Query{}
	if len(args) == 1 {
		q.Target = args[0]
	}
	if v.since != "" {
		var err error
		if q.Since, err = history.ParseWhen("--since", v.since, time.Now()); err != nil {
			return err
		}
	}
	l, err := journal.Read(journalDir(v.root, v.dir), q)
	doc := api.LogOf(l)
	if errors.Is(err, fs.ErrPermission) && v.dir == "" && v.root == "/" {
		err = routes.Ask(ctx, routes.Dir, routes.Log+"?"+asked(q).Encode(), &doc)
	}
	if err != nil {
		return err
	}
	if out.JSON {
		return out.Document(doc)
	}
	text.Log(out, doc)
	return nil
}

// asked is a query as the daemon takes it, which whoever cannot read the journal asks.
func asked(q journal.Query) url.Values {
	v := url.Values{"most": {strconv.Itoa(routes.LogMost)}}
	if q.Target != "" {
		v.Set("target", q.Target)
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339))
	}
	return v
}
