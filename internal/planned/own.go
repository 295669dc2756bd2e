package planned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// The labels that kubelet gives to containers (kubernetes, pkg/kubelet/types/labels.go). The
// container that holds a pod has no name.
const (
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"
)

// list lists the running targets of a kind, as the host does. A container of a pod has the pod's annotations.
func (m Manager) list(ctx context.Context, kind string, ids ...string) ([]targets.Listed, error) {
	ask := m.Host.List
	if m.owners != nil {
		ask = m.owners
	}
	need := NeedOf(m.Config)
	all, err := ask(ctx, kind, need, ids...)
	for i, l := range all {
		all[i] = m.Now(l)
	}
	if kind != "containerd" || err != nil || !slices.ContainsFunc(all, func(l targets.Listed) bool { return l.Labels[containerNameLabel] != "" }) {
		return all, err
	}
	var uids []string // of the pods of those that were asked for
	for _, l := range all {
		if uid := l.Labels[podUIDLabel]; len(ids) > 0 && uid != "" && !slices.Contains(uids, uid) {
			uids = append(uids, uid)
		}
	}
	pods, err := ask(ctx, "pod", need, uids...)
	if err != nil {
		return nil, err // without annotations they would get other limits than they ask for
	}
	of := map[string]targets.Listed{}
	for _, p := range pods {
		of[p.UID] = m.Now(p)
	}
	for i, l := range all {
		uid := l.Labels[podUIDLabel]
		if uid == "" {
			continue
		}
		its := of[uid]
		all[i].Annotations = its.Annotations
		if its.Annotations == nil && its.Unread != nil && l.Unread == nil {
			all[i].Unread = &targets.UnreadError{Target: l.String(), Why: "it is in a pod of which " + its.Unread.Why}
		}
	}
	return all, nil
}

// LabelsOf are the names of the labels that the plans and weir itself go by.
func LabelsOf(config *plans.Config) map[string]bool {
	labels := map[string]bool{plans.OwnLabel: true, podUIDLabel: true, podNamespaceLabel: true, containerNameLabel: true}
	for _, a := range config.Assignments {
		for name := range a.Labels {
			labels[name] = true
		}
	}
	return labels
}

// NeedOf is which labels and annotations the plans and weir itself go by.
func NeedOf(config *plans.Config) targets.Need {
	labels := LabelsOf(config)
	return targets.Need{
		Label: func(name string) bool { return labels[name] },
		Annotation: func(name string) bool {
			return strings.HasPrefix(name, annotations.Prefix) && name != annotations.Status
		},
	}
}

// askedBy adds to the facts of a pod, or of a container in one, what the pod's annotations ask.
func askedBy(l targets.Listed, f *plans.Facts) {
	asked, err := annotations.Parse(l.Annotations)
	if f.Wrong = err; err != nil {
		return
	}
	part := asked.Part
	if l.Kind == "pod" {
		f.On = asked.On
	} else {
		part = asked.Containers[l.Labels[containerNameLabel]]
	}
	f.Limit = part.Limit
	if part.Plan != "" {
		f.Own = &part.Plan
	}
}

// placeOwn finds the devices of what a target's annotations ask. A limit on a volume replaces that
// on every disk where both are on one; of two volumes on one disk the lower limit counts.
// unfound are volumes that none of its containers has mounted.
func (m Manager) placeOwn(ctx context.Context, c plans.Choice, t targets.Target, s *seen) (all []place.Placed, unfound []string, err error) {
	if !c.Limit.IsZero() {
		if all, err = m.place(ctx, []limit.Asked{{Limit: c.Limit}}, &t); err == nil {
			all, err = m.everywhere(ctx, all, all, c.Limit, s)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	var named []place.Placed
	for _, on := range c.On {
		its, err := m.placeVolume(ctx, on, t, "", s)
		if errors.Is(err, errUnmounted) {
			unfound = append(unfound, on.Volume)
			continue
		}
		if err != nil {
			return nil, unfound, fmt.Errorf("annotation %son.%s: %w", annotations.Prefix, on.Volume, err)
		}
		named = lowest(named, its)
	}
	for _, one := range named {
		if i := indexOf(all, one); i >= 0 {
			all[i].Limit = all[i].Limit.Overlay(one.Limit)
		} else {
			all = append(all, one)
		}
	}
	return all, unfound, nil
}

func indexOf(all []place.Placed, one place.Placed) int {
	return slices.IndexFunc(all, func(p place.Placed) bool { return p.Device.Number == one.Device.Number })
}

// lowest adds limits to others. Of two rates on one device the lower counts.
func lowest(all, more []place.Placed) []place.Placed {
	for _, one := range more {
		i := indexOf(all, one)
		if i < 0 {
			all = append(all, one)
			continue
		}
		all[i].Limit = lower(all[i].Limit, one.Limit)
	}
	return all
}

// csi is the directory of CSI drivers' volumes among those of a pod (kubernetes, pkg/volume/csi).
const csi = "kubernetes.io~csi"

// errUnmounted says that none of a target's processes has a volume.
var errUnmounted = errors.New("none of its containers has mounted it")

// placeVolume finds the devices of a limit on a volume: those of volume, and those that it had found before. Its errors
// are those of volume.
func (m Manager) placeVolume(ctx context.Context, on annotations.On, t targets.Target, plugin string, s *seen) (all []place.Placed, err error) {
	chains, err := m.volume(ctx, on, t, plugin)
	var none *blkdev.NoBlockDeviceError
	if err != nil && !errors.Is(err, errUnmounted) && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &none) {
		return nil, err
	}
	for _, chain := range chains {
		for _, dev := range chain.Devices {
			all = lowest(all, []place.Placed{{Chain: chain, Device: dev, Limit: on.Limit}})
		}
	}
	for _, dev := range s.of(on, plugin != "") {
		its, err := m.standing(ctx, dev, on.Limit)
		if err != nil {
			return nil, err
		}
		all = lowest(all, its)
	}
	for _, p := range all {
		s.addVolume(seenVolume{on.Volume, on.Path, plugin != "", p.Device.Number})
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// volume finds the devices of a volume of a pod by its containers' mounts, of which each can have another at one path. The
// error is errUnmounted where none of them has it, and OfMount's where none has it on a device. With a plugin it is that
// plugin's volume, which kubelet has mounted: whoever wrote the pod may have given the name to another of its volumes, or to
// a directory in one.
func (m Manager) volume(ctx context.Context, on annotations.On, t targets.Target, plugin string) (all []blkdev.Chain, err error) {
	none := errUnmounted
	var hosts map[blkdev.Number]bool // file systems that kubelet has mounted for a volume of this name
	for _, pid := range t.Views() {
		mounts, err := m.Host.Devices().Mounts(pid)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		if hosts == nil && (plugin != "" || on.Path == "" && on.Volume != annotations.Rootfs) {
			if hosts, err = m.mountedFor(on.Volume, plugin); err != nil {
				return nil, err
			}
		}
		slices.Reverse(mounts) // a later mount hides an earlier one
		i := slices.IndexFunc(mounts, func(at blkdev.Mount) bool {
			switch {
			case plugin != "":
				return hosts[at.Number]
			case on.Volume == annotations.Rootfs:
				return at.Point == "/"
			case on.Path != "":
				return at.Point == on.Path
			}
			return isVolumeOf(at.Root, "", on.Volume) || hosts[at.Number]
		})
		if i < 0 {
			continue
		}
		chain, err := m.Host.Devices().OfMount(ctx, mounts[i])
		var without *blkdev.NoBlockDeviceError
		switch {
		case err == nil:
			all = append(all, chain)
		case errors.As(err, &without), errors.Is(err, fs.ErrNotExist): // another container can have it on a disk
			none = err
		default:
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, none
	}
	return all, nil
}

// mountedFor lists the file systems that are mounted on the host for a volume, of one plugin or of any.
func (m Manager) mountedFor(volume, plugin string) (map[blkdev.Number]bool, error) {
	mounts, err := m.Host.Devices().Mounts(1)
	if err != nil {
		return nil, err
	}
	all := map[blkdev.Number]bool{}
	for _, at := range mounts {
		if isVolumeOf(at.Point, plugin, volume) {
			all[at.Number] = true
		}
	}
	return all, nil
}

// isVolumeOf reports whether a directory is one that kubelet has for a volume:
// .../pods/UID/volumes/PLUGIN/NAME, and what is below it (kubernetes, pkg/kubelet/kubelet_getters.go).
// A persistent volume's directory has the name of the PersistentVolume. No plugin: any.
func isVolumeOf(dir, plugin, name string) bool {
	parts := strings.Split(dir, "/")
	for i := 0; i+4 < len(parts); i++ {
		if parts[i] == "pods" && parts[i+2] == "volumes" && (plugin == "" || parts[i+3] == plugin) && parts[i+4] == name {
			return true
		}
	}
	return false
}
