package cgroupfs

import "errors"

// A Kernel takes lines that weir writes to the files of a hierarchy. file is the path below the
// root of the host. An error is the kernel's refusal.
type Kernel func(file, line string) error

// Rehearse hands the lines for a copy of a host to a stand-in for the kernel, which may change the
// files. Without it a copy is never written. Tests of what weir writes need it. The hierarchies of
// a real host have the kernel: for those it returns an error.
func (fs *FS) Rehearse(k Kernel) error {
	if !fs.fixture {
		return errors.New("rehearse: " + fs.root + " is a real host")
	}
	for _, h := range fs.all {
		h.stand = k
	}
	return nil
}

// Groups stands in for what the kernel does with the directories of groups, which are named below
// the root of the host.
type Groups struct {
	Made  func(dir string) error // gives a new one its files
	Going func(dir string) error // empties one that is about to go, or refuses
}

// RehearseGroups is Rehearse for groups that weir makes and removes.
func (fs *FS) RehearseGroups(g Groups) error {
	if !fs.fixture {
		return errors.New("rehearse: " + fs.root + " is a real host")
	}
	for _, h := range fs.all {
		h.groups = g
	}
	return nil
}
