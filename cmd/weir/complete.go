package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/volume"
)

// completeWithin bounds how long a completion may take, and completeMost how much it lists: the
// user is waiting at the keyboard. On a busy emulated machine, starting weir and asking systemd
// has taken more than half a second.
const (
	completeWithin = 2 * time.Second
	completeMost   = 500
)

// completeTarget completes the one target of a verb: live units, containers, groups and
// processes.
// What cannot be asked has no names; nothing is said, and nothing is cleaned up.
func (a *app) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	const stay = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	kind, name, chosen := strings.Cut(typed, ":")
	if !chosen {
		var kinds []string
		for _, d := range target.Descriptions() {
			kinds = append(kinds, d.Name+":\t"+d.What)
		}
		return kinds, stay
	}
	spaced := cobra.ShellCompDirectiveNoFileComp
	if kind == "containerd" || kind == "cgroup" {
		spaced = stay
	}
	h, err := host.Open(a.options())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer h.FS.Close()
	return bounded(kind+":", h.Live(ctx, kind, name)), spaced
}

// choices are the values that flags take, where these can be listed.
var choices = map[string][]string{
	"hold":   {limit.HoldAuto.String(), limit.HoldKernel.String(), limit.HoldPacer.String()},
	"cgroup": {"auto", "v1", "v2"},
	"fs":     volume.Formats(),
	"paths":  {"direct", "sync", "buffered", "mapped", "async"},
	"ops":    {"write", "read", "fsync", "fault"},
}

// takeFiles are the flags whose value is a file, a directory or a device.
var takeFiles = []string{"on", "svg", "dir", "latency", "root"}

// completeFlags completes the values of the flags of a verb and the verbs below it, with files
// only where a flag takes a file.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, f.Usage = pflag.UnquoteUsage(f) // a shell shows it as it is
		if f.Value.Type() == "bool" || slices.Contains(takeFiles, f.Name) {
			return
		}
		values := choices[f.Name]
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return listed(typed, values), cobra.ShellCompDirectiveNoFileComp
		}) // what has one already keeps it
	})
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

// listed completes the last of values that stand in a list with commas.
func listed(typed string, values []string) []string {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var list []string
	for _, v := range values {
		list = append(list, before+v)
	}
	return list
}

// completeVolume completes the names of volumes, as far as they can be read.
func (a *app) completeVolume(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if err := a.open(); err == nil && a.root == "/" {
		names = space.Names(a.host) // nothing is said to a shell that completes
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func bounded(prefix string, names []string) []string {
	var list []string
	for _, n := range names[:min(len(names), completeMost)] {
		list = append(list, prefix+n)
	}
	return list
}
