package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/cgconfig"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newImport(a *app) *cobra.Command {
	var apply bool
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Translate libcgroup's configuration into weir commands",
		Long: "Read libcgroup's configuration (" + cgconfig.MainFile + " and " + cgconfig.MoreDir + "/*.conf, or FILE) and print the weir set commands\n" +
			"that give its cgroups the same disk I/O limits. Messages name the settings that are left out, and why. weir changes\n" +
			"nothing unless you add --apply, which sets the limits of those cgroups that exist.",
		Example: "  weir import\n  weir import /etc/cgconfig.conf --apply",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("import: name at most one file; %d are named", len(args))
			}
			if len(args) == 1 && args[0] == "" {
				return cli.Usagef("import \"\": name a file, or leave it out for libcgroup's own")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files := args
			if len(args) == 0 {
				var err error
				if files, err = cgconfig.Files(a.root); err != nil {
					return fmt.Errorf("import: %w", err)
				}
			}
			return a.importFiles(cmd.Context(), files, apply)
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "set the limits of the cgroups that exist")
	a.cgroupFlag(cmd)
	return cmd
}

func (a *app) importFiles(ctx context.Context, names []string, apply bool) error {
	files, broken := readAll(names)
	if len(files) == 0 {
		return broken
	}
	limits, notes := cgconfig.Limits(files...)
	for _, n := range notes {
		a.out.Say("%s:%d: %s", n.File, n.Line, n.Text)
	}
	groups := cgconfig.Groups(limits)
	a.sayNested(groups)
	doc := api.ImportOf(apply, notes)
	failed := 0
	for _, g := range groups {
		command := commandOf(g)
		var err error
		if apply {
			err = a.apply(ctx, g)
		}
		doc.Groups = append(doc.Groups, api.ImportGroupOf(g, command, err))
		switch {
		case err != nil:
			a.out.Fail(fmt.Errorf("%s:%d: %w", g.File, g.Line, err))
			failed++
		case !a.out.JSON:
			a.out.Print("%s", command)
		}
	}
	var err error
	if a.out.JSON {
		err = a.out.Document(doc)
	}
	said := a.saidOf(names)
	switch {
	case len(groups) == 0:
		a.out.Say("%s gives no group a disk I/O limit", said)
	case failed > 0 && err == nil:
		err = fmt.Errorf("import %s: could not set the limits of %d of %s", said, failed, cli.Plural(len(groups), "group", "groups"))
	}
	return errors.Join(broken, err)
}

// readAll reads files. A file that cannot be read does not hide the others.
func readAll(names []string) (files []cgconfig.File, err error) {
	for _, name := range names {
		file, failed := cgconfig.Read(name)
		var syntax *cgconfig.SyntaxError
		switch {
		case errors.As(failed, &syntax):
			err = errors.Join(err, fmt.Errorf("import %s: %w", name, failed))
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("import: %w", failed))
		default:
			files = append(files, file)
		}
	}
	return files, err
}

// saidOf names the files of a configuration.
func (a *app) saidOf(names []string) string {
	if len(names) > 2 {
		return filepath.Join(a.root, cgconfig.MainFile) + " and " + filepath.Join(a.root, cgconfig.MoreDir)
	}
	return strings.Join(names, " and ")
}

// commandOf is the command that sets the limits of a group.
func commandOf(g cgconfig.Group) string {
	command := "weir set " + cli.Quote(g.Target())
	if g.IsRoot() { // who runs that line has read it
		command += " --whole-cgroup"
	}
	for _, l := range g.Limits {
		command += " " + cli.Flags(l)
	}
	return command
}

// nestsMost bounds the pairs of groups that sayNested names.
const nestsMost = 8

// sayNested warns of groups below other groups, where the limits of both apply.
func (a *app) sayNested(groups []cgconfig.Group) {
	h, err := a.io()
	if err != nil || h.Version != cgroupfs.V2 {
		return // said when limits are set
	}
	nests, more := cgconfig.Nests(groups, nestsMost)
	for _, n := range nests {
		a.out.Say("note: on cgroup v2 the limits of %s apply to %s too", n.Outer.Target(), n.Inner.Target())
	}
	if more > 0 {
		a.out.Say("note: so they do for %s of groups", cli.Plural(more, "more pair", "more pairs"))
	}
}

// apply sets what the file gives one group, as weir set does.
func (a *app) apply(ctx context.Context, g cgconfig.Group) error {
	manager, err := a.limits()
	if err != nil {
		return err
	}
	result, err := manager.Set(ctx, limiting.Request{Target: g.Target(), Asked: g.Limits, Foreign: !a.out.Quiet})
	a.sayApart(result, err)
	return text.Error(fault.Instead(err, fault.ShowOnly, fault.Remedy{Do: fault.AskHost})) // import shows lines without --apply
}
