package environ

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Cgroups says where the hierarchies that matter here are mounted.
type Cgroups struct {
	Mode     Mode     `json:"mode"`
	Unified  string   `json:"unified"`  // mount point of cgroup2; empty when there is none
	IOInV2   bool     `json:"io_in_v2"` // the io controller belongs to cgroup2
	MemInV2  bool     `json:"mem_in_v2"`
	Blkio    string   `json:"blkio"`  // mount point of v1's blkio
	Memory   string   `json:"memory"` // mount point of v1's memory
	Mounted1 []string `json:"mounted1"`
}

// FindCgroups reads /proc/self/mountinfo; see proc_pid_mountinfo(5). It is
// deliberately not weir's own reader: a test must not believe what it tests.
func FindCgroups() (Cgroups, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Cgroups{}, fmt.Errorf("find cgroups: %w", err)
	}
	defer f.Close()
	c, err := parseCgroups(f)
	if err != nil {
		return Cgroups{}, fmt.Errorf("find cgroups: %w", err)
	}
	if c.Unified != "" {
		data, err := os.ReadFile(filepath.Join(c.Unified, "cgroup.controllers"))
		if err != nil {
			return Cgroups{}, fmt.Errorf("find cgroups: %w", err)
		}
		have := strings.Fields(string(data))
		c.IOInV2 = slices.Contains(have, "io")
		c.MemInV2 = slices.Contains(have, "memory")
		switch {
		case c.Mode == Hybrid && c.IOInV2 && c.Memory == "":
			c.Mode = HybridV2
		case c.Mode == Hybrid && c.IOInV2:
			c.Mode = Split
		}
	}
	return c, nil
}

func parseCgroups(r io.Reader) (Cgroups, error) {
	var c Cgroups
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20) // a mount point can be tens of kilobytes long
	for s.Scan() {
		before, after, ok := strings.Cut(s.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			return Cgroups{}, fmt.Errorf("parse mountinfo: %q", s.Text())
		}
		at := left[4]
		switch right[0] {
		case "cgroup2":
			if c.Unified == "" {
				c.Unified = at
			}
		case "cgroup":
			c.Mounted1 = append(c.Mounted1, at)
			for option := range strings.SplitSeq(right[2], ",") {
				switch {
				case option == "blkio" && c.Blkio == "":
					c.Blkio = at
				case option == "memory" && c.Memory == "":
					c.Memory = at
				}
			}
		}
	}
	switch {
	case c.Unified != "" && len(c.Mounted1) > 0:
		c.Mode = Hybrid
	case c.Unified != "":
		c.Mode = V2
	case len(c.Mounted1) > 0:
		c.Mode = V1
	}
	return c, s.Err()
}
