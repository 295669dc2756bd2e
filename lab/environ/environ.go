package environ

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Variable is the environment variable that names the description's file.
const Variable = "WEIR_LAB"

// Everywhere is the environment variable by which a run asks each guest for all that
// it can.
const Everywhere = "WEIR_LAB_EVERYWHERE"

// A full guest that a test boots again keeps the results so far in Kept, on its disk, and
// goes on with Again set. Results are in this folder of Environ.Dir meanwhile.
const (
	Again   = "WEIR_LAB_AGAIN"
	Kept    = "/var/lib/weir-lab"
	Results = "results"
	Uptime  = "uptime" // among those kept: how long the guest was up by then
)

// A small guest that may be reset has the word Resets on its kernel's command line, with how often it
// was. ResetOrder begins the line on its console with which a test asks for one, within a time.
const (
	Resets     = "lab.resets="
	ResetOrder = "lab: reset within "
)

// Mode is the way cgroup hierarchies are mounted.
type Mode string

// The modes.
const (
	V1     Mode = "v1"     // one hierarchy a controller, no cgroup2
	V2     Mode = "v2"     // cgroup2 alone
	Hybrid Mode = "hybrid" // the io controller on v1, and a cgroup2 without it
	// HybridV2 has v1's hierarchies beside a cgroup2 with io and memory, as the boot
	// parameter cgroup_no_v1=blkio,memory makes it.
	HybridV2 Mode = "hybrid-v2"
	// Split has io on cgroup2 and memory on v1, as cgroup_no_v1=blkio alone makes it.
	Split Mode = "split"
)

// Environ is what a test may know about the machine it runs on.
type Environ struct {
	Guest    string   `json:"guest"`    // row of the matrix, such as "uml-6.1-v2"
	Lane     string   `json:"lane"`     // what carries it: "uml", "qemu" or "native"
	Promised Mode     `json:"promised"` // what the matrix asked for; empty natively
	Kernel   string   `json:"kernel"`   // uname -r
	Cgroups  Cgroups  `json:"cgroups"`  // as found
	Disks    []Disk   `json:"disks"`    // test disks made by the host; none natively
	Features []string `json:"features"` // what else the guest has: "dm", "systemd", …
	Only     []string `json:"only"`     // requirements: tests that ask for less run elsewhere
	Slow     float64  `json:"slow"`     // how much longer than others the machine takes; at least 1, or 0 if nobody measured it
	// Piece is how long a piece of computing (package calibrate) takes here, undisturbed; 0 if nobody measured it.
	Piece time.Duration `json:"piece"`
	Dir   string        `json:"dir"` // scratch folder of the lab, for claims on disks
}

// Disk is a whole disk made for tests.
type Disk struct {
	Name string `json:"name"` // the host's name for it, such as "ext4-0"
	FS   string `json:"fs"`   // the file system on it; empty for none
	Node string `json:"node"` // /dev/…
}

// Patience is how long to wait here for what takes less than limit on a fast machine.
func (e Environ) Patience(limit time.Duration) time.Duration {
	return time.Duration(float64(limit) * max(1, e.Slow))
}

// Has reports whether the guest claims a feature.
func (e Environ) Has(feature string) bool { return slices.Contains(e.Features, feature) }

// Load reads the description that WEIR_LAB names. ok is false outside any lab.
func Load() (e Environ, ok bool, err error) {
	path := os.Getenv(Variable)
	if path == "" {
		return Environ{}, false, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Environ{}, false, fmt.Errorf("load lab environment: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Environ{}, false, fmt.Errorf("load lab environment %s: %w", path, err)
	}
	return e, true, nil
}

// Save writes the description to path.
func (e Environ) Save(path string) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("save lab environment: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("save lab environment: %w", err)
	}
	return nil
}
