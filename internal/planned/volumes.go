package planned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// A VolumeError says that the limit that others keep with a volume cannot be set.
type VolumeError struct {
	Volume string
	Err    error
}

func (e *VolumeError) Error() string {
	return fmt.Sprintf("volume %s: %v", plain.Short(e.Volume, 253), e.Err)
}

func (e *VolumeError) Unwrap() error { return e.Err }

// placeVolumes finds the devices of the limits that others keep with a pod's volumes. A volume that no
// container has yet has none.
func (m Manager) placeVolumes(ctx context.Context, c plans.Choice, t targets.Target, s *seen) (all []place.Placed, err error) {
	for _, on := range c.Volumes {
		its, err := m.placeVolume(ctx, on, t, csi, s)
		if errors.Is(err, errUnmounted) {
			its, err = m.placeRaw(ctx, on, s)
		}
		if err != nil {
			return nil, &VolumeError{on.Volume, err}
		}
		all = lowest(all, its) // none: it is not there yet
	}
	return all, nil
}

// published is where kubelet has a CSI driver put the device of a volume without a file system, for
// each pod: .../PUBLISHED/NAME/UID (kubernetes, pkg/volume/csi/csi_block.go).
const published = "/plugins/kubernetes.io/csi/volumeDevices/publish/"

// placeRaw is placeVolume for a volume without a file system, by rawVolume.
func (m Manager) placeRaw(ctx context.Context, on annotations.On, s *seen) (all []place.Placed, err error) {
	chain, err := m.rawVolume(ctx, on.Volume)
	for _, dev := range chain.Devices {
		s.addVolume(seenVolume{Name: on.Volume, Driver: true, Device: dev.Number})
		all = append(all, place.Placed{Chain: chain, Device: dev, Limit: on.Limit})
	}
	return all, err
}

// rawVolume finds the device of a volume that containers have without a file system. The driver mounts
// the file of the device, so that the mount's root is its name in /dev. The chain is empty where there is
// none.
func (m Manager) rawVolume(ctx context.Context, name string) (blkdev.Chain, error) {
	mounts, err := m.Host.Devices().Mounts(1)
	if err != nil {
		return blkdev.Chain{}, err
	}
	i := slices.IndexFunc(mounts, func(at blkdev.Mount) bool {
		_, rest, is := strings.Cut(at.Point, published)
		its, _, pod := strings.Cut(rest, "/")
		return is && pod && its == name && at.FSType == "devtmpfs" && at.Root != "/"
	})
	if i < 0 {
		return blkdev.Chain{}, nil
	}
	chain, err := m.Host.Devices().Resolve(ctx, strings.TrimPrefix(mounts[i].Root, "/"))
	if errors.Is(err, fs.ErrNotExist) { // it has gone meanwhile
		return blkdev.Chain{}, nil
	}
	return chain, err
}
