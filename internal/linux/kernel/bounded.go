package kernel

import (
	"errors"
	"io/fs"
	"os"
)

// A Bounded is a device, or a file system without one, with a bound of its own on dirty pages
// (sysfs-class-bdi).
type Bounded struct {
	Name       string // "254:0", as below /sys/class/bdi
	Strict     bool   // its writers are held to it below the host's threshold too
	MinPercent uint64 // of the host's threshold
	MaxPercent uint64
	MaxBytes   uint64 // what the bound comes to; 0: not known (before 6.2)
}

// Bounded lists them.
func (f FS) Bounded() ([]Bounded, error) {
	const dir = "/sys/class/bdi/"
	entries, err := os.ReadDir(f.at(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Bounded
	for _, e := range entries {
		b := Bounded{Name: e.Name(), MaxPercent: 100}
		var strict uint64
		for file, into := range map[string]*uint64{"strict_limit": &strict, "min_ratio": &b.MinPercent, "max_ratio": &b.MaxPercent, "max_bytes": &b.MaxBytes} {
			n, there, err := f.number(dir + e.Name() + "/" + file)
			if err != nil {
				return nil, err
			}
			if there {
				*into = n
			}
		}
		if b.Strict = strict == 1; b.Strict || b.MinPercent > 0 || b.MaxPercent < 100 {
			all = append(all, b)
		}
	}
	return all, nil
}
