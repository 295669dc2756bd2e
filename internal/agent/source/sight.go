package source

import (
	"path"
	"strings"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/mountinfo"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets/vm"
)

// A sight is what the disks of running targets depend on, as it was at one time.
type sight struct {
	places  places
	mounts  map[mount]bool
	devices map[blkdev.Number]uint64 // block devices, with the inodes of their links in sysfs: a new one has another inode
	domains vm.Stored                // what libvirt has stored of its domains
}

// A mount is what counts of one: which disk it is of. Container runtimes mount one of some disk all the time.
type mount struct {
	number blkdev.Number // major 0: its file system has no number of a device
	source string        // then, the name of its device; with a point, whatever it is
	point  string        // of one on the way to a place of a plan: of these each counts; empty: it is not
}

// places are where plans have limits, beside every disk that a target has mounted.
type places struct {
	config  *plans.Config   // whose they are
	devices bool            // some plan names a device
	way     map[string]bool // the paths that plans name, with all directories above them
}

func placesOf(config *plans.Config) places {
	p := places{config: config, way: map[string]bool{}}
	for _, plan := range config.Plans {
		for _, on := range plan.On {
			if !strings.HasPrefix(on.On, "/") || strings.HasPrefix(on.On, "/dev/") {
				p.devices = true
				continue
			}
			for at := path.Clean(on.On); !p.way[at]; at = path.Dir(at) {
				p.way[at] = true
			}
		}
	}
	return p
}

// see notes a line of mountinfo. Texts are copied: the line can be of megabytes.
func (s *sight) see(i mountinfo.Info) {
	number := blkdev.Number{Major: i.Major, Minor: i.Minor}
	switch {
	case number.Major != 0:
		s.mounts[mount{number: number}] = true
	case strings.HasPrefix(i.Source, "/dev/"): // btrfs numbers its files by itself
		s.mounts[mount{source: strings.Clone(i.Source)}] = true
	}
	if s.places.way[i.Point] {
		s.mounts[mount{number: number, source: strings.Clone(i.Source), point: strings.Clone(i.Point)}] = true
	}
}

// news says which targets may have other disks than before: all of them, or libvirt's domains.
func (s *sight) news(was *sight) (all, domains bool) {
	same := s.places.config == was.places.config // else the ways differ, and all was looked at for the other plans
	for m := range s.mounts {
		all = all || !was.mounts[m] && (m.point == "" || same)
	}
	for m := range was.mounts { // a target may keep the rule of a disk that it has no more; a place leads elsewhere
		all = all || same && m.point != "" && !s.mounts[m]
	}
	for number, inode := range s.devices {
		if before, is := was.devices[number]; !is || before != inode {
			domains = true
			all = all || s.places.devices || s.mounts[mount{number: number}]
		}
	}
	return all, domains || s.domains.IsNews(was.domains)
}
