package weir_test

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/weir-io/weir"
	"github.com/weir-io/weir/internal/host/hosttest"
)

// copyOf makes a copy of a machine, "v1" or "v2", until remove.
func copyOf(name string) (root string, remove func()) {
	root, err := os.MkdirTemp("", "weir-copy-")
	if err == nil {
		err = hosttest.Make(root, name)
	}
	if err != nil {
		panic(err)
	}
	return root, func() {
		if err := os.RemoveAll(root); err != nil {
			panic(err)
		}
	}
}

// still is what a copy of v2 needs so that its target can be observed: groups without processes,
// because those of a copy have no directories, and disks that stand still.
func still(root string) error {
	var errs []error
	for _, group := range []string{"batch", "batch/night"} {
		errs = append(errs, os.Truncate(filepath.Join(root, "sys/fs/cgroup", group, "cgroup.procs"), 0))
	}
	for _, disk := range []string{"vda", "vdb"} {
		stat := []byte("0 0 0 0 0 0 0 0 0 0 0\n")
		errs = append(errs, os.WriteFile(filepath.Join(root, "sys/devices/pci0000:00/block", disk, "stat"), stat, 0o666))
	}
	return errors.Join(errs...)
}

// open opens a copy of a machine until done, with some changes.
func open(machine string, changes ...func(root string) error) (h *weir.Host, done func()) {
	root, remove := copyOf(machine)
	for _, change := range changes {
		if err := change(root); err != nil {
			panic(err)
		}
	}
	h, err := weir.Open(weir.Options{Root: root})
	if err != nil {
		panic(err)
	}
	return h, func() {
		if err := h.Close(); err != nil {
			panic(err)
		}
		remove()
	}
}

// standIn has a copy take changes, as its kernel would.
func standIn(h *weir.Host) *hosttest.Kernel {
	k, err := weir.StandIn(h)
	if err != nil {
		panic(err)
	}
	return k
}
