// Package install has systemd start weir's agent at each boot, and undoes that: the groups of its
// sockets, its unit, and the unit's start. Each step says what it does, is left out if it is done
// already, and is undone if a later one fails.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/base/tool"
	"github.com/weir-io/weir/internal/fault"
)

// Unit is where the unit is, below the root.
const Unit = "/etc/systemd/system/weird.service"

// made is the record of the groups that were made, so that only those are removed. It is in folder.
const (
	made   = "install-groups"
	folder = "/var/lib/weir"
)

// Groups are the groups of the sockets: for reading and for changing.
func Groups() []string { return []string{"weir-read", "weir"} }

const (
	name = "weird.service"
	// first is how each unit begins that weir has made. Another one is somebody else's.
	first = "# weird keeps the plans in /etc/weir/plans.d in force"
	// pathOfUnit is the program in the unit's text.
	pathOfUnit = "/usr/local/bin/weird"
	// unitMost bounds a unit, in bytes.
	unitMost = 1 << 20
	// commandMost bounds a command. weird is not ready before all limits are set, so its start is not
	// waited for.
	commandMost = time.Minute
)

// A System is what is changed. System{} is this host but for Program.
type System struct {
	Root    string // below which the files are
	Program string // weird's path
	// Run runs a command; nil: this host does.
	Run func(ctx context.Context, words ...string) error
	// HasGroup reports whether a group exists; nil: /etc/group has it.
	HasGroup func(name string) bool
	// IsUp reports whether systemd runs; nil: /run/systemd/system says so.
	IsUp func() bool
}

func (s System) run(ctx context.Context, words ...string) error {
	if s.Run != nil {
		return s.Run(ctx, words...)
	}
	ctx, cancel := context.WithTimeout(ctx, commandMost)
	defer cancel()
	out, said, err := tool.Run(exec.CommandContext(ctx, words[0], words[1:]...))
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, bytes.TrimSpace(append(out, said...)))
	}
	return nil
}

func (s System) hasGroup(name string) bool {
	if s.HasGroup != nil {
		return s.HasGroup(name)
	}
	_, err := user.LookupGroup(name)
	return err == nil
}

func (s System) check() error {
	up := s.IsUp
	if up == nil {
		up = func() bool { _, err := os.Stat("/run/systemd/system"); return err == nil } // sd_booted(3)
	}
	if !up() {
		return &fault.Unsupported{Feature: "have systemd run weird", Reason: "systemd does not run here", Remedy: "have what starts your services run: weird run"}
	}
	return nil
}

// checkProgram refuses a path that the unit could not have.
func (s System) checkProgram() error {
	if !filepath.IsAbs(s.Program) || strings.ContainsAny(s.Program, " \t\n\"'\\%$;") {
		return fault.Misusef("the program %q: systemd needs its whole path, without blanks, quotes, %% or $; move it", s.Program)
	}
	return nil
}

func (s System) at(path string) string { return filepath.Join(s.Root, path) }

// text is the unit's.
func (s System) text() string {
	text := strings.Replace(contrib.WeirdService, pathOfUnit, s.Program, 1)
	return strings.Replace(text, "\n#SupplementaryGroups=", "\nSupplementaryGroups=", 1)
}

// unit reads the unit that is there; "": none is. One that is somebody else's is an error.
func (s System) unit() (string, error) {
	text, err := peek.Regular(s.at(Unit), unitMost)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && !strings.HasPrefix(string(text), first) {
		err = fmt.Errorf("%s is not weir's; move it away", s.at(Unit))
	}
	return string(text), err
}

// write gives the unit a text; "": removes it.
func (s System) write(text string) error {
	if text == "" {
		return os.Remove(s.at(Unit))
	}
	return durable.Replace(s.at(Unit), s.at(Unit)+".new", text, 0o644)
}
