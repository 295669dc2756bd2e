package systemd

import (
	"fmt"
	"slices"
	"strings"
)

// types are the suffixes of all units (systemd.unit(5)).
var types = []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}

// nameMax is the length of the longest name that systemd takes, in bytes.
const nameMax = 255

// A NameError says why no unit can have a name.
type NameError struct {
	Name string // as it was given
	Why  string
}

func (e *NameError) Error() string {
	name := fmt.Sprintf("%q", e.Name)
	if len(e.Name) > nameMax {
		name = fmt.Sprintf("%q… (%d bytes)", e.Name[:20], len(e.Name))
	}
	return fmt.Sprintf("unit %s: %s", name, e.Why)
}

// FullName returns the name of a unit that can have processes, with its suffix. A name without
// a suffix is a service, as for systemctl(1). The error is a *NameError. A valid name is one
// element of a path, and never leads upwards.
func FullName(name string) (string, error) {
	full := name
	if !slices.ContainsFunc(types, func(s string) bool { return strings.HasSuffix(name, s) }) {
		full += ".service"
	}
	suffix := full[strings.LastIndexByte(full, '.'):]
	stem := strings.TrimSuffix(full, suffix)
	prefix, instance, at := strings.Cut(stem, "@")
	var why string
	switch {
	case name == "" || stem == "":
		why = "a name is needed, such as unit:nginx.service"
	case strings.TrimLeftFunc(stem, inName) != "":
		why = `a name has only letters, digits and : - _ . \ @; systemd spells other characters as \x and two digits (systemd-escape)`
	case len(full) > nameMax:
		why = fmt.Sprintf("a unit's name has at most %d bytes", nameMax)
	case at && prefix == "":
		why = "it has no name before the @"
	case at && instance == "":
		why = "a template does not run itself; name one of its instances, such as unit:" + prefix + "@NAME" + suffix
	case !slices.Contains(suffixes, suffix):
		why = "a " + suffix[1:] + " has no processes to limit; name what it starts, such as a service"
	default:
		return full, nil
	}
	return "", &NameError{Name: name, Why: why}
}

// inName reports whether a character can be in a unit's name, and in its instance.
func inName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`:-_.\@`, r)
}

// Restarts reports whether a unit can start again under its name. A scope cannot: it ends with its processes.
func Restarts(unit string) bool { return !strings.HasSuffix(unit, ".scope") }
