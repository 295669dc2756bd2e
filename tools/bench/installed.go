package main

import (
	"errors"
	"os"
	"path/filepath"
)

// installed copies weir and weird into a new directory, as an installation does, and returns weir's
// path. What weir is compared with was installed too. The kernel keeps a file that was written from
// its beginning to its end in larger pieces than one that the linker made, and maps these at once: of
// weir set that is a sixth.
func installed() (weir string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	for _, name := range []string{"weir", "weird"} {
		if err := copyProgram(name, filepath.Join(dir, name)); err != nil {
			return "", nil, errors.Join(err, remove())
		}
	}
	return filepath.Join(dir, "weir"), remove, nil
}
