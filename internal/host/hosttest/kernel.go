package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Kernel stands in for the kernel of a copy: it keeps rules as io.max and blkio.throttle.* do,
// and notes what is written.
type Kernel struct {
	Writes []cgroupfs.Write
	// Refuse, if it is not nil, may refuse a line.
	Refuse func(file, line string) error
}

// Rehearse has a copy take what is written to its cgroups.
func Rehearse(t testing.TB, h *host.Host) *Kernel {
	t.Helper()
	k, err := StandIn(h)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// StandIn is Rehearse for an example, which has no test.
func StandIn(h *host.Host) (*Kernel, error) {
	k := &Kernel{}
	return k, h.FS.Rehearse(k.write)
}

func (k *Kernel) write(file, line string) error {
	if k.Refuse != nil {
		if err := k.Refuse(file, line); err != nil {
			return err
		}
	}
	k.Writes = append(k.Writes, cgroupfs.Write{File: file, Line: line})
	return Take(file, line)
}

// Take does to a file of a group what the kernel does when somebody writes a line to it.
func Take(file, line string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	name := filepath.Base(file)
	switch {
	case name == "io.max":
		return keep(file, string(text), line, overlay)
	case strings.HasPrefix(name, "blkio.throttle."):
		return keep(file, string(text), line, func(_, rate string) string {
			if rate == "0" {
				return ""
			}
			return rate
		})
	}
	if name == "cgroup.subtree_control" {
		line = enabled(string(text), line)
	}
	return os.WriteFile(file, []byte(line+"\n"), 0o666)
}

// enabled changes the controllers of a list as "+io -memory" says.
func enabled(was, line string) string {
	controllers := strings.Fields(was)
	for _, word := range strings.Fields(line) {
		name := word[1:]
		controllers = slices.DeleteFunc(controllers, func(c string) bool { return c == name })
		if word[0] == '+' {
			controllers = append(controllers, name)
		}
	}
	return strings.Join(controllers, " ")
}

// keep changes the rule of the line's device; an empty rule goes.
func keep(file, text, line string, rule func(was, line string) string) error {
	device, rest, ok := strings.Cut(line, " ")
	if !ok {
		return fmt.Errorf("%s: a line without a rate: %q", file, line)
	}
	var lines strings.Builder
	was := ""
	for one := range strings.Lines(text) {
		if its, is := strings.CutPrefix(one, device+" "); is {
			was = strings.TrimSpace(its)
			continue
		}
		lines.WriteString(one)
	}
	if is := rule(was, rest); is != "" {
		lines.WriteString(device + " " + is + "\n")
	}
	return os.WriteFile(file, []byte(lines.String()), 0o666)
}

// overlay changes those rates of a rule of io.max that a line names.
func overlay(was, line string) string {
	order := []string{"rbps", "wbps", "riops", "wiops"}
	rates := map[string]string{}
	for _, word := range strings.Fields(was + " " + line) {
		key, value, _ := strings.Cut(word, "=")
		rates[key] = value
	}
	var words []string
	bound := false
	for _, key := range order {
		if rates[key] == "" {
			rates[key] = "max"
		}
		bound = bound || rates[key] != "max"
		words = append(words, key+"="+rates[key])
	}
	if !bound {
		return ""
	}
	return strings.Join(words, " ")
}
