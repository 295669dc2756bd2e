package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/near"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Target is what a limit is for.
type Target struct {
	Kind  string // the kind's name
	Name  string // what the user called it within the kind
	Group cgroupfs.Group
	Owner Owner
	PID   int // the one process that was named, or 0
	// Firsts are processes whose mounts together are all mounts of the target, one for each of
	// its parts; none: any of its processes will do.
	Firsts []int
	// Disks are the files and devices that it does its I/O on, if its mounts do not show that:
	// the images of a virtual machine.
	Disks []string
	// ReadDisks are those that it only reads: backing images, a virtual CD.
	ReadDisks []string
	// NoDisks says why none of its I/O is on a disk of this host, if its mounts do not show
	// that; nil: some is, or its mounts show it.
	NoDisks error
	// Record is the limits that the target's owner stores; nil: not known.
	Record *Record
	// Lasting is the permanent name of a target that its owner starts again: docker:WHOLE-ID.
	// Empty: the target is made anew each time.
	Lasting string
}

// String spells the target as a user would.
func (t Target) String() string { return t.Kind + ":" + t.Name }

// Views returns processes whose mounts together are the target's. It returns 0, the caller, if
// the target has no process.
func (t Target) Views() []int {
	if t.PID != 0 {
		return []int{t.PID}
	}
	if len(t.Firsts) > 0 {
		return t.Firsts
	}
	if members, err := Members(t.Group); err == nil && len(members) > 0 {
		return oneAView(members)
	}
	return []int{0}
}

// viewsMax bounds how many mount namespaces are read.
const viewsMax = 32

// oneAView picks the first process of each mount namespace.
func oneAView(pids []int) []int {
	var firsts []int
	seen := map[string]bool{}
	for _, pid := range pids {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err == nil && !seen[space] && len(firsts) < viewsMax { // it may have ended
			seen[space] = true
			firsts = append(firsts, pid)
		}
	}
	if len(firsts) == 0 {
		return pids[:1]
	}
	return firsts
}

// An Owner is who made a cgroup and writes its files.
type Owner struct {
	Kind string `json:"kind"`           // "systemd", "docker", "podman", "libvirt", "weir", "kernel" (a root group) or "unknown"
	Name string `json:"name,omitempty"` // the unit, or the container's id
	// Unit is the unit of the group: systemd writes its files, whoever asked systemd to make
	// the group. Empty: none.
	Unit string `json:"-"`
}

func (o Owner) String() string {
	if o.Name == "" {
		return o.Kind
	}
	return o.Kind + " (" + o.Name + ")"
}

// A Kind resolves the names of one kind of target.
type Kind interface {
	// Name is the kind's prefix, as in "pid:4711".
	Name() string
	// Resolve finds a target. If no target of this kind has the name, the error is a *NotFound;
	// if none can have it, a *NameError; if this host has no targets of the kind, a
	// *NoKindError.
	Resolve(ctx context.Context, name string) (Target, error)
}

// A Guesser is a kind that decides whether to look up a bare name: a lookup is a question to
// another program, which not every user may ask.
type Guesser interface {
	MayKnow(name string) bool
}

// A NotFound error says that a kind has no target of that name.
type NotFound struct {
	Target string // as the user spelled it
	Why    string
}

func (e *NotFound) Error() string { return e.Target + ": " + e.Why }

// Class makes it fault.NotFound.
func (e *NotFound) Class() fault.Class { return fault.NotFound }

// A NameError says that no target of a kind can have a name.
type NameError struct{ Err error }

func (e *NameError) Error() string { return e.Err.Error() }
func (e *NameError) Unwrap() error { return e.Err }

// Class makes it fault.WrongUse.
func (e *NameError) Class() fault.Class { return fault.WrongUse }

// A NoKindError says that this host has no targets of a kind.
type NoKindError struct{ Err *fault.Unsupported }

func (e *NoKindError) Error() string { return e.Err.Error() }
func (e *NoKindError) Unwrap() error { return e.Err }

// Ungrouped is the error for a target that exists but has no group of its own yet.
type Ungrouped interface {
	error
	Target() string // as a user spells it
}

// A StoppedError says that a target exists but is not running, so it has no group.
type StoppedError struct {
	Target string // as the user spelled it
	Why    string
	// Unit is the unit that systemd will make for it when it runs again; empty: none.
	Unit    string
	Lasting string // Target's
	Record  *Record
}

func (e *StoppedError) Error() string { return e.Target + ": " + e.Why }

// isNone reports whether a kind answered that it has no target of a name.
func isNone(err error) bool {
	return isA[*NotFound](err) || isA[*NameError](err) || isA[*NoKindError](err)
}

func isA[T error](err error) bool {
	var as T
	return errors.As(err, &as)
}

// Resolve finds the target that spec names: KIND:NAME, or a bare name that exactly one kind
// knows.
func Resolve(ctx context.Context, kinds []Kind, spec string) (Target, error) {
	if spec == "" {
		return Target{}, &NameError{errors.New("target \"\": a name is needed, such as unit:nginx, docker:web or pid:4711")}
	}
	for _, k := range kinds {
		if name, ok := strings.CutPrefix(spec, k.Name()+":"); ok {
			return k.Resolve(ctx, name)
		}
	}
	var found []Target
	var spellings []string
	var asked, silent []string // the kinds that have no such name, and those that could not be asked
	var lacks error            // of a target that is there
	for _, k := range kinds {
		if g, ok := k.(Guesser); ok && !g.MayKnow(spec) {
			silent = append(silent, k.Name())
			continue
		}
		t, err := k.Resolve(ctx, spec)
		if isNone(err) {
			if isA[*NoKindError](err) {
				silent = append(silent, k.Name())
			} else {
				asked = append(asked, k.Name())
			}
			continue
		}
		var ungrouped Ungrouped
		if errors.As(err, &ungrouped) {
			lacks, spellings = err, append(spellings, ungrouped.Target())
			continue
		}
		if err != nil {
			return Target{}, fmt.Errorf("target %q: %w (or write one of %s before it)", spec, err, prefixes(kinds))
		}
		found, spellings = append(found, t), append(spellings, t.String())
	}
	switch {
	case len(spellings) == 1 && lacks != nil:
		return Target{}, lacks
	case len(spellings) == 1:
		return found[0], nil
	case len(spellings) == 0:
		return Target{}, &NotFound{Target: fmt.Sprintf("target %q", spec), Why: cmp.Or(misspelt(spec, kinds), unknown(spec, asked, silent))}
	}
	return Target{}, fmt.Errorf("target %q: this name is ambiguous; write one of %s", spec, strings.Join(spellings, ", "))
}

// misspelt says which kind may be meant by one that there is not; "" if none is close to it.
func misspelt(spec string, kinds []Kind) string {
	typed, name, _ := strings.Cut(spec, ":")
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name()
	}
	meant := near.Names(typed, names)
	if name == "" || len(meant) == 0 || slices.Contains(names, typed) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return ""
	}
	return fmt.Sprintf("there is no kind %q; did you mean %s:%s?", typed, strings.Join(meant, ":"+name+", "), name)
}

// unknown says which kinds were asked for an unknown bare name, which could not be asked, and
// how to name one.
func unknown(spec string, asked, silent []string) string {
	var b strings.Builder
	if len(asked) > 0 {
		b.WriteString("no " + either(asked) + " of this name; ")
	}
	if len(silent) > 0 {
		b.WriteString("not available here: " + strings.Join(silent, ", ") + "; ")
	}
	kind := slices.Concat(asked, silent, []string{"unit"})[0]
	if _, err := strconv.Atoi(spec); err != nil && slices.Contains(append(asked, silent...), "unit") {
		kind = "unit"
	}
	if strings.ContainsFunc(spec, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		spec = "NAME"
	}
	b.WriteString("write the kind before it, such as " + kind + ":" + spec)
	return b.String()
}

// either joins names: "unit, docker or pod".
func either(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

// prefixes lists the kinds as they are written before a name.
func prefixes(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name()+":")
	}
	return strings.Join(names, ", ")
}

// NameOf returns the target of a group: its unit or container if it has one, otherwise its
// path.
func NameOf(g cgroupfs.Group, o Owner) string {
	if o.Kind == "systemd" {
		return "unit:" + o.Name
	}
	switch o.Kind {
	case "docker", "podman":
		return o.Kind + ":" + o.Name
	case "libvirt":
		return "vm:" + o.Name
	}
	return "cgroup:" + g.Path()
}

// OwnerOf infers a group's owner from its path. systemdRuns says whether systemd is PID 1 of
// the host.
func OwnerOf(g cgroupfs.Group, systemdRuns bool) Owner {
	if g.IsRoot() {
		return Owner{Kind: "kernel"}
	}
	elements := strings.Split(strings.Trim(g.Path(), "/"), "/")
	last := elements[len(elements)-1]
	unit := ""
	if name, ok := systemd.UnitOfPath(g.Path()); ok && systemdRuns {
		unit = name
	}
	if kind, id, ok := container(elements); ok {
		return Owner{Kind: kind, Name: id[:12], Unit: unit}
	}
	if name, ok := domain(elements); ok {
		return Owner{Kind: "libvirt", Name: name, Unit: unit}
	}
	if unit != "" {
		return Owner{Kind: "systemd", Name: unit, Unit: unit}
	}
	if strings.HasPrefix(last, "weir-") {
		return Owner{Kind: "weir"}
	}
	return Owner{Kind: "unknown"}
}

// LibvirtInner is the group below the scope of a libvirt domain in which libvirt puts the
// domain and its limits (v2).
const LibvirtInner = "libvirt"

// domain finds the name of the libvirt domain that systemd-machined has made a scope for:
// machine-qemu\x2d1\x2dNAME.scope. libvirt gives machined a name of letters, digits and -,
// which begins with the driver and a number.
func domain(elements []string) (name string, ok bool) {
	last := elements[len(elements)-1]
	if last == LibvirtInner && len(elements) > 1 {
		last = elements[len(elements)-2]
	}
	last, scope := strings.CutSuffix(last, ".scope")
	rest, machine := strings.CutPrefix(last, "machine-")
	if !scope || !machine {
		return "", false
	}
	fields := strings.SplitN(strings.ReplaceAll(rest, `\x2d`, "-"), "-", 3)
	if len(fields) < 3 || fields[0] != "qemu" && fields[0] != "lxc" || fields[2] == "" || strings.Trim(fields[1], "0123456789") != "" {
		return "", false
	}
	return fields[2], true
}

// IsWord reports whether text consists of ASCII letters and digits and, after the first
// character, _ . and -, and is no longer than most bytes. Names of containers and pods look
// like that.
func IsWord(text string, most int) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
	}
	return text != "" && len(text) <= most
}

// IsContainerID reports whether text can be a container's whole id.
func IsContainerID(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// Members lists the processes that a rule on the group applies to: its own, and on v2 also
// those of child groups. A group that is gone has none.
func Members(g cgroupfs.Group) ([]int, error) {
	if g.Hierarchy().Version == cgroupfs.V1 {
		pids, err := g.Processes()
		if cgroupfs.IsGone(err) {
			return nil, nil
		}
		return pids, err
	}
	var all []int
	err := g.Walk(func(below cgroupfs.Group) error {
		pids, err := below.Processes()
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // threaded: its processes are those of a group above
		}
		all = append(all, pids...)
		return err
	})
	return all, err
}
