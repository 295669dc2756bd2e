package blkdev

import (
	"context"
	"errors"
)

// A Skipped is a mount that holds files and has no device that a rule could be on.
type Skipped struct {
	Mount  Mount  `json:"mount"`
	Reason string `json:"reason"` // Err's message
	Err    error  `json:"-"`
}

// OfMounts finds every disk that the mounts of some processes are on (pid 0: of this
// process, or below another root of its init). Each device is in the Devices of
// one chain, that of the first mount on it; the layers of a later chain may show it too. Views of the kernel and memory are left out; a mount that
// holds files and cannot be taken to a device is in skipped, with the reason. Mount
// points are not touched, so a dead network mount does not hang it.
func (fs FS) OfMounts(ctx context.Context, pids ...int) (chains []Chain, skipped []Skipped, err error) {
	var mounts []Mount
	for _, pid := range pids {
		of, err := fs.mounts(pid, func(m Mount) (want, stop bool) { return !holdsNothing(m.FSType), false })
		if err != nil {
			return nil, nil, err
		}
		mounts = append(mounts, of...)
	}
	r := &resolver{fs: fs}
	done := make(map[Number]bool) // numbers of mounts: one a file system
	seen := make(map[Number]bool) // numbers of devices
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
			skipped = append(skipped, Skipped{Mount: m, Reason: err.Error(), Err: err})
			continue
		}
		if c.Devices = unseen(seen, c.Devices); len(c.Devices) > 0 {
			chains = append(chains, c)
		}
	}
	return chains, skipped, nil
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
