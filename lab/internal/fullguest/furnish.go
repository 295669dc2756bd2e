package fullguest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const units = "etc/systemd/system"

// furnish turns a bootstrapped tree into the lab's image: what starts at boot is
// the lab's job and nothing that packages enabled.
func furnish(tree string) error {
	for _, dir := range []string{"multi-user.target.wants", "sockets.target.wants", "timers.target.wants", "default.target.wants"} {
		if err := os.RemoveAll(filepath.Join(tree, units, dir)); err != nil {
			return err
		}
	}
	for _, unit := range masked {
		if err := link("/dev/null", filepath.Join(tree, units, unit)); err != nil {
			return err
		}
	}
	if err := lay(tree); err != nil {
		return err
	}
	return settle(tree)
}

// lay copies the overlay.
func lay(tree string) error {
	return fs.WalkDir(overlay, "root", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(tree, strings.TrimPrefix(path, "root"))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := overlay.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Base(filepath.Dir(path)) == "sbin" {
			mode = 0o755
		}
		return errors.Join(os.WriteFile(to, data, mode), os.Chmod(to, mode))
	})
}

// settle writes what is not a file of the overlay: links, and files that would
// otherwise be made on each boot. The image names no package source.
func settle(tree string) error {
	err := errors.Join(
		os.MkdirAll(filepath.Join(tree, "usr/lib/modules"), 0o755),
		os.MkdirAll(filepath.Join(tree, units, "sysinit.target.wants"), 0o755),
		link("weir-lab.target", filepath.Join(tree, units, "default.target")),
		link("../weir-modules.service", filepath.Join(tree, units, "sysinit.target.wants/weir-modules.service")),
		os.RemoveAll(filepath.Join(tree, "etc/apt/sources.list")),
		os.RemoveAll(filepath.Join(tree, "etc/apt/sources.list.d")),
	)
	for name, text := range map[string]string{
		"etc/hostname":    "weir-lab\n",
		"etc/hosts":       "127.0.0.1 localhost weir-lab\n",
		"etc/fstab":       "",
		"etc/resolv.conf": "",
		"etc/machine-id":  "77656972000000000000000000006c61\n",
	} {
		path := filepath.Join(tree, name)
		err = errors.Join(err, os.RemoveAll(path), os.WriteFile(path, []byte(text), 0o644))
	}
	return err
}

// link makes a symbolic link in the place of whatever is there.
func link(to, path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(to, path)
}
