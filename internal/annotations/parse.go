package annotations

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/near"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
)

// rates are the names of the four rates, as plans have them.
var rates = []string{"read", "write", "read-iops", "write-iops"}

// keyOf is the rate of a name in rates.
func keyOf(name string) limit.Key { return limit.Keys[slices.Index(rates, name)] }

// Parse reads a pod's annotations. Those whose name does not begin with Prefix are not looked at, nor
// is Status.
// The error is a *Refusal, the first in the order of the names.
func Parse(all map[string]string) (Pod, error) {
	p := Pod{Containers: map[string]Part{}}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !strings.HasPrefix(name, Prefix) || name == Status })
	if len(names) > manyMost {
		return Pod{}, &Refusal{names[0], fmt.Sprintf("the pod has %d annotations that begin with %s, and at most %d are possible", len(names), Prefix, manyMost)}
	}
	for _, name := range names {
		value := all[name]
		reason := ""
		if len(value) > valueMost {
			reason = fmt.Sprintf("it has %d bytes, and at most %d are possible", len(value), valueMost)
		} else {
			reason = p.read(strings.TrimPrefix(name, Prefix), value)
		}
		if reason != "" {
			return Pod{}, &Refusal{name, reason}
		}
	}
	return p, nil
}

// read reads one annotation, and returns what is wrong with it.
func (p *Pod) read(name, value string) (reason string) {
	what, of, single := strings.Cut(name, ".")
	switch {
	case what == "on" && single:
		return p.readOn(of, value)
	case what != "plan" && !slices.Contains(rates, what):
		return unknown(what)
	case single && !isLabel(of):
		return shown(of) + " cannot be the name of a container"
	}
	part := p.Part
	if single {
		part = p.Containers[of]
	}
	if what == "plan" {
		if !isPlan(value) {
			return fmt.Sprintf("%s cannot be the name of a plan: it has at most %d letters, digits, _ . and -", shown(value), nameMost)
		}
		part.Plan = value
	} else if part.Limit, reason = with(part.Limit, what, value); reason != "" {
		return reason
	}
	if single {
		p.Containers[of] = part
	} else {
		p.Part = part
	}
	return ""
}

// with adds a rate to a limit.
func with(l limit.Limit, name, value string) (limit.Limit, string) {
	most := uint64(limit.MaxBytesPerSec)
	k := keyOf(name)
	if k.IsOps() {
		most = limit.MaxOpsPerSec
	}
	r, reason := quantity(value, most)
	return l.With(k, r), reason
}

// unknown says which names there are.
func unknown(name string) string {
	known := append([]string{"plan", "on.VOLUME"}, rates...)
	if meant := near.Names(plain.Short(name, shownMost), known); len(meant) > 0 {
		known = meant
	}
	return "weir has no such annotation; write " + Prefix + strings.Join(known, " or "+Prefix)
}

// readOn reads "write=5Mi read=10Mi" or "path=/data,write=5Mi".
func (p *Pod) readOn(volume, value string) string {
	if !isVolume(volume) {
		return shown(volume) + " cannot be the name of a volume"
	}
	on := On{Volume: volume}
	words := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	for _, word := range words {
		name, its, _ := strings.Cut(word, "=")
		switch {
		case name == "path" && on.Path == "":
			if !isPath(its) {
				return "path: " + shown(its) + " is no path in a container; write one that begins with / and has no .. in it"
			}
			on.Path = its
			continue
		case name != "path" && !slices.Contains(rates, name):
			return shown(word) + " is no rate; write " + strings.Join(rates, "=, ") + "= or path="
		case name == "path" || on.Limit.Get(keyOf(name)).IsSet():
			return name + " is given twice"
		}
		var reason string
		if on.Limit, reason = with(on.Limit, name, its); reason != "" {
			return name + ": " + reason
		}
	}
	if on.Limit.IsZero() {
		return "it names no rate; write " + strings.Join(rates, "=, ") + "=, such as write=10Mi"
	}
	if on.Path != "" && volume == Rootfs {
		return Rootfs + " has no path; leave it out, or choose another name"
	}
	p.On = append(p.On, on)
	return ""
}

// isLabel reports whether a container can have a name: an RFC 1123 label.
func isLabel(text string) bool {
	for i, r := range text {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && (r != '-' || i == 0 || i == len(text)-1) {
			return false
		}
	}
	return text != "" && len(text) <= nameMost
}

// isVolume reports whether a volume can have a name: labels with points between them, as a
// persistent volume has it.
func isVolume(text string) bool {
	return !slices.ContainsFunc(strings.Split(text, "."), func(one string) bool { return !isLabel(one) })
}

// isPlan reports whether a plan can have a name, as the files of plans have it.
func isPlan(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return text != "" && len(text) <= nameMost
}

func isPath(text string) bool {
	return path.IsAbs(text) && path.Clean(text) == text && plain.Quoted(text) == text
}
