package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Kind resolves vm:NAME within one hierarchy.
type Kind struct {
	FS          *cgroupfs.FS
	Hierarchy   *cgroupfs.Hierarchy
	SystemdRuns bool
	Root        string // below which libvirt's files are looked for
}

// Name returns "vm".
func (Kind) Name() string { return "vm" }

// drivers are the drivers of libvirt whose domains have cgroups.
var drivers = []string{"qemu", "lxc"}

// nameMax bounds a domain's name: with ".pid" it is a file name.
const nameMax = 251

// folder is where a driver stores which domains run.
func (k Kind) folder(driver string) string { return filepath.Join(k.Root, "run/libvirt", driver) }

// Live names the running domains whose names begin with prefix, for completion.
func (k Kind) Live(prefix string) []string {
	var names []string
	for _, driver := range drivers {
		entries, err := os.ReadDir(k.folder(driver))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name, is := strings.CutSuffix(e.Name(), ".pid"); is && isName(name) && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isName reports whether a domain can have this name: libvirt accepts everything except slashes
// and control characters.
func isName(name string) bool {
	return name != "" && len(name) <= nameMax && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '/' || unicode.IsControl(r) })
}

// A domain is a running domain.
type domain struct {
	driver string
	pid    int // QEMU's, or that of LXC's controller
}

// Resolve finds the group of a running domain, and its disks.
func (k Kind) Resolve(_ context.Context, name string) (targets.Target, error) {
	spec := "vm:" + name
	if !isName(name) {
		return targets.Target{}, &targets.NameError{Err: fmt.Errorf("vm %q: name a domain as virsh list shows it, in at most %d bytes, without / and control characters", name, nameMax)}
	}
	d, err := k.find(spec, name)
	if err != nil {
		return targets.Target{}, err
	}
	group, err := k.groupOf(spec, d)
	if err != nil {
		return targets.Target{}, err
	}
	owner := targets.OwnerOf(group, k.SystemdRuns)
	owner.Kind, owner.Name = "libvirt", name
	t := targets.Target{Kind: "vm", Name: name, Group: group, Owner: owner}
	if d.driver == "lxc" {
		if child := firstChild(k.Root, d.pid); child != 0 {
			t.Firsts = []int{child}
		}
		return t, nil
	}
	files, err := openDisks(k.Root, d.pid)
	t.Disks, t.ReadDisks = files.written, files.read
	if err == nil && len(t.Disks)+len(t.ReadDisks) == 0 {
		t.NoDisks = fault.With(&fault.Unsupported{Feature: "limit disk I/O of " + spec, Reason: "it has no disk on this host: its disks are in memory or on other machines, which QEMU reaches over the network",
			Remedy: "let QEMU limit each of them (virsh blkdeviotune " + cmdline.Quote(name) + " DISK --write-bytes-sec N)"}, fault.Remedy{Do: fault.NameDisk})
	}
	return t, err
}

// Names finds the running domains, by the path of the group in which each is limited. (The name
// of the scope has only what machined accepts: no _ and no dots.)
func (k Kind) Names() map[string]string {
	names := map[string]string{}
	for _, driver := range drivers {
		for _, name := range k.Live("") {
			d, err := k.readPID(driver, name)
			if err != nil {
				continue
			}
			if group, err := k.groupOf("vm:"+name, d); err == nil {
				names[group.Path()] = name
			}
		}
	}
	return names
}

// find reads which process a domain is.
func (k Kind) find(spec, name string) (domain, error) {
	var found []domain
	there := false
	for _, driver := range drivers {
		d, err := k.readPID(driver, name)
		if errors.Is(err, fs.ErrNotExist) {
			_, err := os.Stat(k.folder(driver))
			there = there || err == nil
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			return domain{}, fmt.Errorf("%s: read %s: permission denied (run weir as root)", spec, k.folder(driver))
		}
		if err != nil {
			return domain{}, fmt.Errorf("%s: %w", spec, err)
		}
		found = append(found, d)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return domain{}, fmt.Errorf("%s: QEMU and LXC both have a domain of this name; name the group (cgroup:/PATH, from systemd-cgls)", spec)
	case !there:
		return domain{}, &targets.NoKindError{Err: &fault.Unsupported{Feature: spec, Reason: "libvirt has not run anything here (" + k.folder(drivers[0]) + ")", Remedy: "start the domain: virsh start NAME"}}
	}
	return domain{}, &targets.NotFound{Target: spec, Why: "no such domain is running; virsh list and virsh -c lxc:/// list show running domains"}
}

// readPID reads what libvirt has stored about a running domain.
func (k Kind) readPID(driver, name string) (domain, error) {
	file := filepath.Join(k.folder(driver), name+".pid")
	text, err := peek.File(file, peek.Short)
	if err != nil {
		return domain{}, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return domain{}, fmt.Errorf("%s has no process number: %s", file, plain.Short(string(text), 60))
	}
	return domain{driver, pid}, nil
}

// groupOf finds the domain's group. On v2 that is the group with libvirt's own limits, which
// apply to all groups below it: what libvirt makes in machined's scope, or the scope itself
// with older versions. On v1, where a rule applies only to its own group, it is the group of
// the domain's process.
func (k Kind) groupOf(spec string, d domain) (cgroupfs.Group, error) {
	group, err := k.FS.OfProcess(k.Hierarchy, d.pid)
	if cgroupfs.IsGone(err) {
		return group, &targets.NotFound{Target: spec, Why: fmt.Sprintf("its process, %d, has ended", d.pid)}
	}
	if err != nil {
		return group, err
	}
	below := group
	for above := group; !above.IsRoot(); above = above.Parent() {
		if !isDomains(above.Path(), d.driver) {
			below = above
			continue
		}
		if k.Hierarchy.Version == cgroupfs.V1 {
			return group, nil
		}
		if path.Base(below.Path()) == targets.LibvirtInner {
			if _, limits, err := below.Text("io.max"); limits || err != nil {
				return below, err
			}
		}
		return above, nil
	}
	return group, fmt.Errorf("%s: its process, %d, is in cgroup %s, which is not libvirt's: the domain has just ended, or libvirt makes no cgroups here; name the group (cgroup:/PATH)", spec, d.pid, group.Path())
}

// isDomains reports whether a group was made for a domain of a driver: machined's scope,
// libvirt's own /machine/NAME.libvirt-DRIVER, or the oldest form, libvirt/DRIVER/NAME.
func isDomains(group, driver string) bool {
	last, above := path.Base(group), path.Dir(group)
	return strings.HasPrefix(last, `machine-`+driver+`\x2d`) && strings.HasSuffix(last, ".scope") ||
		strings.HasSuffix(last, ".libvirt-"+driver) || strings.HasSuffix(above, "/libvirt/"+driver)
}
