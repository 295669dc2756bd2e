package keep

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
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

// In is the file in which weir keeps limits of a target; empty: it keeps none, or nobody can read them.
func In(h *host.Host, t targets.Target) (string, error) {
	r, _, err := Recorded(h, t)
	if err != nil || len(r.Entries) > 0 {
		return RecordPath(h, t.Lasting), err
	}
	b := base{h, t, t.Group.Hierarchy().Version}
	if ofUnit := b.version == cgroupfs.V1 && t.Owner.Kind == "systemd" && t.Owner.Unit != ""; !b.scoped() && !ofUnit {
		return "", nil
	}
	path := filepath.Join(h.Root, dropin.Path(t.Owner.Unit))
	if entries, err := readDropIn(path); err != nil || len(entries) == 0 {
		return "", nil // a file of somebody else's keeps nothing of what weir has set
	}
	return path, nil
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
