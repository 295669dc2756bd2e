// Package volumeqos reads the limits that CSI drivers keep with a volume, in each driver's own words: as
// attributes of the volume, as parameters of its VolumeAttributesClass, or as metadata of its attachment.
// It is pure: it gets the texts, which nobody has checked.
package volumeqos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
)

// A driver is how one CSI driver writes limits.
type driver struct {
	names map[string][]limit.Key
	// none are the values that stand for no limit.
	none []string
	// needs is a name without which the others do not count; empty: there is none.
	needs string
	// attached says that the limits are in the metadata of the volume's attachment to a node, and
	// nowhere else.
	attached bool
}

// of finds a driver by the name that a PersistentVolume has; nil: it keeps no limits.
func of(name string) *driver {
	switch {
	// ceph-csi with krbd (ceph-csi, internal/rbd/cgroup_qos.go; rook.io, "RBD QoS"): bytes and operations a
	// second, as numbers. Rook and others put a prefix before the driver's name.
	case name == "rbd.csi.ceph.com", strings.HasSuffix(name, ".rbd.csi.ceph.com"):
		return &driver{names: map[string][]limit.Key{"maxReadIops": {limit.RIOPS}, "maxWriteIops": {limit.WIOPS}, "maxReadBps": {limit.RBPS}, "maxWriteBps": {limit.WBPS}},
			none: []string{""}}
	// OpenEBS' LVM LocalPV (openebs.io, "Local PV LVM VAC Parameters"), which spells Bandwith so. A name without
	// a direction stands for both.
	case name == "local.csi.openebs.io":
		return &driver{names: map[string][]limit.Key{
			"qosIopsLimit": {limit.RIOPS, limit.WIOPS}, "qosIopsReadLimit": {limit.RIOPS}, "qosIopsWriteLimit": {limit.WIOPS},
			"qosBandwithPerSec": {limit.RBPS, limit.WBPS}, "qosBandwithReadPerSec": {limit.RBPS}, "qosBandwithWritePerSec": {limit.WBPS},
		}, none: []string{"max"}}
	// LINSTOR: its driver gives the parameters of a StorageClass to ControllerPublishVolume's answer, which
	// Kubernetes keeps in the VolumeAttachment (piraeusdatastore/nri-volume-qos, pkg/meta; linstor-csi,
	// pkg/driver). Zero is no limit.
	case name == "linstor.csi.linbit.com":
		return &driver{names: map[string][]limit.Key{"qos.linbit.com/rbps": {limit.RBPS}, "qos.linbit.com/wbps": {limit.WBPS}, "qos.linbit.com/riops": {limit.RIOPS}, "qos.linbit.com/wiops": {limit.WIOPS}},
			none: []string{"", "0"}, needs: "qos.linbit.com/device", attached: true}
	}
	return nil
}

// Knows reports whether a driver keeps limits with its volumes.
func Knows(driver string) bool { return of(driver) != nil }

// InAttachment reports whether a driver keeps them in the metadata of a volume's attachment to a node.
// The others keep them in the volume's attributes and in its class.
func InAttachment(driver string) bool {
	d := of(driver)
	return d != nil && d.attached
}

// valueMost bounds a value that is kept, in bytes: longer ones are cut, and no rate is that long.
const valueMost = 256

// Own are the entries that a driver's limits are read from.
func Own(driver string, all map[string]string) map[string]string {
	its := map[string]string{}
	if d := of(driver); d != nil {
		for name, value := range all {
			if _, is := d.names[name]; is || name == d.needs {
				its[name] = value[:min(len(value), valueMost)]
			}
		}
	}
	return its
}

// Parse reads the limit of a volume from what its driver keeps in several places. Of several values of one
// rate the lowest counts. Other names are not looked at. All are taken, or none: the error names the
// first that is wrong, in the order of the names.
func Parse(driver string, places ...map[string]string) (limit.Limit, error) {
	var l limit.Limit
	d := of(driver)
	if d == nil {
		return l, nil
	}
	for _, all := range places {
		if _, there := all[d.needs]; d.needs != "" && !there {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, k := range d.names[name] {
				if slices.Contains(d.none, all[name]) {
					continue
				}
				r, err := annotations.Rate(k, all[name])
				if err != nil {
					return limit.Limit{}, fmt.Errorf("%s: %w", plain.Short(name, 100), err)
				}
				n, _ := r.Number()
				if was, bound := l.Get(k).Number(); !bound || n < was {
					l = l.With(k, r)
				}
			}
		}
	}
	return l, nil
}
