package blkdev

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
)

// A Skipped is a mount that holds files and has no device that a rule could be on.
type Skipped struct {
	Mount  Mount  `json:"mount"`
	Reason string `json:"reason"` // Err's message, without the mount's name
	Err    error  `json:"-"`
}

// OfMounts finds every disk that the mounts of some processes are on (pid 0: of this
// process, or below another root of its init). Each device is in the Devices of
// one chain, that of the first mount on it; the layers of a later chain may show it too. Views of the kernel and memory are left out; a mount that
// holds files and cannot be taken to a device is in skipped, with the reason. Mount
// points are not touched, so a dead network mount does not hang it.
//
// A process that has ended is left out, as long as another one has mounts; lines of a list
// of mounts that cannot be read are in skipped, together. So are all mounts from the
// maxSkipped-th on.
func (fs FS) OfMounts(ctx context.Context, pids ...int) (chains []Chain, skipped []Skipped, err error) {
	mounts, skipped, err := fs.mountsOfAll(pids)
	if err != nil {
		return nil, nil, err
	}
	r := &resolver{fs: fs}
	if len(mounts) > 1 {
		_, _ = r.ownMounts() // once, for all of them; who needs it will see the error
	}
	done := make(map[Number]bool) // numbers of mounts: one a file system
	seen := make(map[Number]bool) // numbers of devices
	more := 0
	for _, m := range mounts {
		if done[m.Number] {
			continue
		}
		done[m.Number] = true
		c := Chain{Spec: m.Point}
		if err := r.onMount(ctx, &c, m, maxDepth); err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil && errors.Is(err, ctxErr) {
				return nil, nil, err
			}
			if len(skipped) == maxSkipped {
				more++
				continue
			}
			skipped = append(skipped, Skipped{Mount: m, Reason: reasonOf(m, err), Err: err})
			continue
		}
		if c.Devices = unseen(seen, c.Devices); len(c.Devices) > 0 {
			chains = append(chains, c)
		}
	}
	if more > 0 {
		skipped = append(skipped, leftOut("other mounts", fmt.Sprintf("%d more without a device", more)))
	}
	return chains, skipped, nil
}

// maxSkipped bounds the mounts without a device that are told one by one.
const maxSkipped = 8

// mountsOfAll lists the mounts of some processes that hold files.
func (fs FS) mountsOfAll(pids []int) (mounts []Mount, skipped []Skipped, err error) {
	read := false
	var gone error
	for _, pid := range pids {
		of, left, err := fs.mountsLeft(pid, func(m Mount) (want, stop bool) { return !holdsNothing(m.FSType), false })
		if err != nil {
			gone = errors.Join(gone, err)
			continue
		}
		read = true
		mounts = append(mounts, of...)
		if left.Lines > 0 {
			skipped = append(skipped, leftOut(fs.mountFile(pid), left.String()))
		}
	}
	if !read {
		return nil, nil, gone
	}
	return mounts, skipped[:min(len(skipped), maxSkipped)], nil
}

// reasonOf is why a mount has no device. Who reads it knows which mount it is about.
func reasonOf(m Mount, err error) string {
	if none := (*NoBlockDeviceError)(nil); errors.As(err, &none) {
		return plain.Brief(none.Reason)
	}
	return strings.TrimPrefix(err.Error(), "resolve "+m.Point+": ")
}

// leftOut is a Skipped that is no mount.
func leftOut(what, why string) Skipped {
	return Skipped{Mount: Mount{Point: what}, Reason: why, Err: errors.New(why)}
}

// unseen returns the devices that are not in seen, and puts them there.
func unseen(seen map[Number]bool, devs []Device) []Device {
	var fresh []Device
	for _, d := range devs {
		if !seen[d.Number] {
			seen[d.Number] = true
			fresh = append(fresh, d)
		}
	}
	return fresh
}
