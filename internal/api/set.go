package api

import (
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Set is the document of weir set and weir clear.
type Set struct {
	Schema
	Target  string        `json:"target"`
	Cgroup  string        `json:"cgroup"`
	Version int           `json:"cgroup_version"`
	Owner   targets.Owner `json:"owner"`
	Devices []SetDevice   `json:"devices"`
}

// A SetDevice is a device that was named, as it is now.
type SetDevice struct {
	Device   string        `json:"device"`
	Number   blkdev.Number `json:"number"`
	Limit    limit.Limit   `json:"limit"`    // in force now, as read back
	Expected []place.Cell  `json:"expected"` // of the rates that were named; of weir clear: none
	Foreign  *place.By     `json:"foreign"`  // see ShowDevice
}

// SetOf makes the document of what a verb, "set" or "clear", has done. It reads back what is in
// force.
func SetOf(verb string, r limiting.Result) (Set, error) {
	doc := Set{Schema: SchemaOf(verb), Target: r.Target, Cgroup: r.Path, Version: int(r.Version), Owner: r.Owner, Devices: []SetDevice{}}
	devices, err := r.Devices()
	for _, d := range devices {
		doc.Devices = append(doc.Devices, SetDevice{d.Device.Node, d.Device.Number, d.Limit, d.Expected.Cells(), d.Expected.Foreign})
	}
	return doc, err
}

// A DryRun is the document of --dry-run.
type DryRun struct {
	Schema
	Steps []hold.Step `json:"steps"`
}

// DryRunOf makes the document of what a verb would do.
func DryRunOf(verb string, steps []hold.Step) DryRun {
	return DryRun{SchemaOf(verb + ".dry-run"), append([]hold.Step{}, steps...)}
}

// A Restore is the document of weir restore.
type Restore struct {
	Schema
	Targets []RestoreTarget `json:"targets"`
}

// A RestoreTarget is what became of the saved limits of one target.
type RestoreTarget struct {
	Target string `json:"target"` // by its owner's name for good
	Name   string `json:"name"`   // as the user spelled it
	State  string `json:"state"`  // "set", "stopped", "unknown" or "failed"
	Why    string `json:"why,omitempty"`
	Kept   []Kept `json:"kept"`
}

// RestoreOf makes the document of what was restored.
func RestoreOf(all []limiting.Restoring) Restore {
	doc := Restore{Schema: SchemaOf("restore"), Targets: []RestoreTarget{}}
	for _, r := range all {
		one := RestoreTarget{Target: r.Target, Name: r.Name, State: string(r.State), Kept: KeptOf(r.Kept)}
		if r.Err != nil {
			one.Why = r.Err.Error()
		}
		doc.Targets = append(doc.Targets, one)
	}
	return doc
}
