package guestrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/lab/environ"
)

// FindDisks gives each named disk its device node: by serial number where the
// disks carry one, by place in UML, whose disks are ubda, ubdb, ….
func FindDisks(lane string, names []string) ([]environ.Disk, error) {
	var disks []environ.Disk
	serials, err := readSerials()
	if err != nil {
		return nil, fmt.Errorf("find disks: %w", err)
	}
	for i, name := range names {
		node := serials[name]
		if lane == "uml" {
			node = "/dev/ubd" + string(rune('a'+i))
		}
		if node == "" {
			return nil, fmt.Errorf("find disk %s: no device has this serial number", name)
		}
		if _, err := os.Stat(node); err != nil {
			return nil, fmt.Errorf("find disk %s: %w", name, err)
		}
		disks = append(disks, environ.Disk{Name: name, FS: fileSystem(name), Node: node})
	}
	return disks, nil
}

// fileSystem is in the name: "ext4-0". "raw-0" has none.
func fileSystem(name string) string {
	kind, _, ok := strings.Cut(name, "-")
	if !ok || kind == "raw" {
		return ""
	}
	return kind
}

func readSerials() (map[string]string, error) {
	paths, err := filepath.Glob("/sys/block/*/serial")
	if err != nil {
		return nil, err
	}
	serials := make(map[string]string)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // some drivers have the file and no serial number
		}
		if serial := strings.TrimSpace(string(data)); serial != "" {
			serials[serial] = "/dev/" + filepath.Base(filepath.Dir(path))
		}
	}
	return serials, nil
}
