package keep

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/containerd"
)

// Recorded reads what weir has on record for a target; nothing for a target without a name for
// good. The notes tell of a damaged record.
func Recorded(h *host.Host, t targets.Target) (Saved, []note.Note, error) {
	if t.Lasting == "" {
		return Saved{}, nil, nil
	}
	r, lost, err := read(h, t.Lasting)
	return r, notesOf(lost, "its saved limits cannot be read, so a restart loses them; save its limits again, or clear them"), err
}

// By is what weir sets again when a target starts, for package why. A file that is damaged, or somebody else's, keeps
// nothing.
func By(ctx context.Context, h *host.Host, t targets.Target) (why.Kept, error) {
	file, entries, err := savedFor(h, t)
	if err != nil || len(entries) == 0 {
		return why.Kept{}, err
	}
	b := base{h, t, t.Group.Hierarchy().Version}
	ofScope := b.scoped() && file == scope{b}.path() // whose names systemd follows, and not the container
	k := why.Kept{File: file}
	for _, e := range entries { // a later one counts where two are on one device
		if ofScope {
			dev, is := systemd.DeviceOf(ctx, h.Root, e.On)
			if k.Unknown = k.Unknown || !is; is {
				k.Rules = overlay(k.Rules, cgroupfs.Rule{Device: dev, Limit: e.Limit})
			}
			continue
		}
		asked, _, err := place.OwnDisks(ctx, h.Devices(), []limit.Asked{e}, t)
		var on []place.Placed
		if err == nil {
			on, _, err = place.Place(ctx, h.Devices(), asked, t.Views())
		}
		if err != nil {
			k.Unknown = true // a disk may be gone, or be mounted later
		}
		for _, p := range on {
			k.Rules = overlay(k.Rules, cgroupfs.Rule{Device: p.Device.Number, Limit: p.Limit})
		}
	}
	return k, ctx.Err()
}

// overlay puts a rule over what rules have for its device.
func overlay(rules []cgroupfs.Rule, r cgroupfs.Rule) []cgroupfs.Rule {
	for i := range rules {
		if rules[i].Device == r.Device {
			rules[i].Limit = rules[i].Limit.Overlay(r.Limit)
			return rules
		}
	}
	return append(rules, r)
}

// savedFor are the limits that weir keeps for a target, and the file that they are in.
func savedFor(h *host.Host, t targets.Target) (file string, entries []limit.Asked, err error) {
	r, _, err := Recorded(h, t)
	if err != nil || len(r.Entries) > 0 {
		return RecordPath(h, t.Lasting), r.Entries, err
	}
	b := base{h, t, t.Group.Hierarchy().Version}
	if ofUnit := b.version == cgroupfs.V1 && t.Owner.Kind == "systemd" && t.Owner.Unit != ""; !b.scoped() && !ofUnit {
		return "", nil, nil
	}
	file = filepath.Join(h.Root, dropin.Path(t.Owner.Unit))
	if entries, err = readDropIn(file); err != nil {
		return "", nil, nil
	}
	return file, entries, nil
}

// Account is the target that limits are kept for on a target's account: itself, or the container
// whose group it is, if it was named by that group, by its unit or by a process.
func Account(ctx context.Context, h *host.Host, t targets.Target) targets.Target {
	if t.Lasting != "" {
		return t
	}
	if kind, id, is := targets.ContainerOf(t.Group); is {
		if c, err := h.Target(ctx, kind+":"+id); err == nil {
			t.Record = c.Record
		}
		t.Kind, t.Name, t.Lasting = kind, id, kind+":"+id
		return t
	}
	all, _ := ListSaved(h.Root) // one that cannot be read is another's
	for _, r := range all {
		name, is := strings.CutPrefix(r.Target, "containerd:")
		namespace, id, _ := strings.Cut(name, "/")
		if is && containerd.IsGroupOf(t.Group.Path(), namespace, id) {
			t.Kind, t.Name, t.Lasting = "containerd", name, r.Target
		}
	}
	return t
}
