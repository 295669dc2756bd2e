package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgconfig"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
)

// Where libcgroup has its configuration: a file, and a directory of others.
const (
	cgconfigFile = "/etc/cgconfig.conf"
	cgconfigDir  = "/etc/cgconfig.d"
)

// Bounds of the configuration: it is written by hand.
const (
	cgconfigBytes = 1 << 20
	cgconfigFiles = 1000
)

func newImport(a *app) *cobra.Command {
	var apply bool
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Translate libcgroup's configuration into weir commands",
		Long: "Read libcgroup's configuration (" + cgconfigFile + " and " + cgconfigDir + "/*.conf, or FILE) and print the weir set commands\n" +
			"that give its cgroups the same disk I/O limits. Messages name the settings that are left out, and why. weir changes\n" +
			"nothing unless you add --apply, which sets the limits of those cgroups that exist.",
		Example: "  weir import\n  weir import /etc/cgconfig.conf --apply",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("import: one file at most; %d given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files := args
			if len(args) == 0 {
				var err error
				if files, err = a.cgconfigs(); err != nil {
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

// importDocument is weir import's JSON (docs/json.md).
type importDocument struct {
	cli.Schema
	Applied bool            `json:"applied"` // --apply: see each group's error
	Groups  []importGroup   `json:"groups"`
	LeftOut []cgconfig.Note `json:"left_out"`
}

type importGroup struct {
	Target  string         `json:"target"`
	File    string         `json:"file"` // that has it
	Line    int            `json:"line"` // of the file
	Command string         `json:"command"`
	Devices []importDevice `json:"devices"`
	Error   string         `json:"error"` // why its limits were not set
}

type importDevice struct {
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
}

// cgconfigs lists the files that libcgroup's own service reads, in the same order.
func (a *app) cgconfigs() ([]string, error) {
	main := filepath.Join(a.root, cgconfigFile)
	more, err := filepath.Glob(filepath.Join(a.root, cgconfigDir, "*.conf"))
	if err != nil {
		return nil, err
	}
	more = slices.DeleteFunc(more, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && !info.Mode().IsRegular() // a FIFO is not waited for
	})
	if len(more) > cgconfigFiles {
		return nil, fmt.Errorf("read %s: it has %d files; weir reads at most %d", filepath.Join(a.root, cgconfigDir), len(more), cgconfigFiles)
	}
	if _, err := os.Stat(main); errors.Is(err, fs.ErrNotExist) && len(more) > 0 {
		return more, nil
	}
	return append([]string{main}, more...), nil
}

// parseAll reads files. A file that cannot be read does not hide the others.
func parseAll(names []string) (files []cgconfig.File, err error) {
	for _, name := range names {
		text, readErr := readSmall(name, cgconfigBytes)
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("import: %w", readErr))
			continue
		}
		sections, parseErr := cgconfig.Parse(text)
		if parseErr != nil {
			err = errors.Join(err, fmt.Errorf("import %s: %w", name, parseErr))
			continue
		}
		files = append(files, cgconfig.File{Name: name, Sections: sections})
	}
	return files, err
}

func (a *app) importFiles(ctx context.Context, names []string, apply bool) error {
	files, broken := parseAll(names)
	if len(files) == 0 {
		return broken
	}
	limits, notes := cgconfig.Limits(files...)
	doc := importDocument{Schema: cli.SchemaOf("import"), Applied: apply, Groups: groupsOf(limits), LeftOut: append([]cgconfig.Note{}, notes...)}
	for _, n := range notes {
		a.out.Say("%s:%d: %s", n.File, n.Line, n.Text)
	}
	a.sayNested(doc.Groups)
	failed := 0
	for i := range doc.Groups {
		g := &doc.Groups[i]
		if apply {
			if err := a.apply(ctx, *g); err != nil {
				g.Error = err.Error()
				a.out.Fail(fmt.Errorf("%s:%d: %w", g.File, g.Line, err))
				failed++
				continue
			}
		}
		if !a.out.JSON {
			a.out.Print("%s", g.Command)
		}
	}
	var err error
	if a.out.JSON {
		err = a.out.Document(doc)
	}
	said := strings.Join(names, " and ")
	if len(names) > 2 {
		said = filepath.Join(a.root, cgconfigFile) + " and " + filepath.Join(a.root, cgconfigDir)
	}
	switch {
	case len(doc.Groups) == 0:
		a.out.Say("%s gives no group a disk I/O limit", said)
	case failed > 0 && err == nil:
		err = fmt.Errorf("import %s: could not set the limits of %d of %s", said, failed, cli.Plural(len(doc.Groups), "group", "groups"))
	}
	return errors.Join(broken, err)
}

// readSmall reads a file that is at most most bytes long.
func readSmall(file string, most int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	if int64(len(text)) > most {
		return "", fmt.Errorf("read %s: it is longer than %d bytes, which is too long for a configuration", file, most)
	}
	return string(text), nil
}

// groupsOf joins the devices of each group.
func groupsOf(limits []cgconfig.GroupLimit) []importGroup {
	groups := []importGroup{}
	place := map[string]int{}
	for _, l := range limits {
		i, known := place[l.Group]
		if !known {
			i = len(groups)
			place[l.Group] = i
			name := "cgroup:" + l.Group
			command := "weir set " + cli.Quote(name)
			if l.Group == "/" { // who runs that line has read it
				command += " --whole-cgroup"
			}
			groups = append(groups, importGroup{Target: name, File: l.File, Line: l.Line, Command: command})
		}
		g := &groups[i]
		g.Devices = append(g.Devices, importDevice{l.Device, l.Limit})
		g.Command += " " + cli.Flags(limit.Asked{On: l.Device.String(), Limit: l.Limit})
	}
	return groups
}

// sayNested warns of groups below other groups: v1's rules, for which most of these files were
// written, do not apply to child groups, but v2's do.
func (a *app) sayNested(groups []importGroup) {
	h, err := a.io()
	if err != nil || h.Version != cgroupfs.V2 {
		return // said when limits are set
	}
	for _, above := range groups {
		for _, g := range groups {
			if strings.HasPrefix(g.Target, strings.TrimSuffix(above.Target, "/")+"/") && g.Target != above.Target {
				a.out.Say("note: on cgroup v2 the limits of %s apply to %s too", above.Target, g.Target)
			}
		}
	}
}

// apply sets what the file gives one group, as weir set does.
func (a *app) apply(ctx context.Context, g importGroup) error {
	var limits []limit.Asked
	for _, d := range g.Devices {
		limits = append(limits, limit.Asked{On: d.Number.String(), Limit: d.Limit})
	}
	quiet := *a
	quiet.out.JSON = false // the document is import's
	return quiet.setLimits(ctx, g.Target, limits, setOptions{hold: limit.HoldAuto})
}
