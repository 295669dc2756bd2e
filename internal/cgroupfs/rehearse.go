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
