package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/targets"
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
		for _, d := range targets.Descriptions() {
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

// choices are the values that a flag takes, where these can be listed.
func choices(flag string) []string {
	switch flag {
	case "hold":
		return []string{limit.HoldAuto.String(), limit.HoldKernel.String(), limit.HoldPacer.String()}
	case "cgroup":
		return []string{"auto", "v1", "v2"}
	case "fs":
		return volume.Formats()
	case "paths":
		return []string{"direct", "sync", "buffered", "mapped", "async"}
	case "ops":
		return []string{"write", "read", "fsync", "fault"}
	}
	return nil
}

// takesFile reports whether the value of a flag is a file, a directory or a device.
func takesFile(flag string) bool {
	return slices.Contains([]string{"on", "svg", "dir", "latency", "root", "plans"}, flag)
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
