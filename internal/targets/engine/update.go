package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/targets"
)

// updateMinor is the first version of Docker's API, 1.x, in which updating a container takes
// device rates; older ones silently ignore them (moby's pull request 52651).
const updateMinor = 55

// updates reports whether the engine can change the stored device rates of an existing
// container. Podman's API, which is like Docker's, has version numbers of its own.
func (m Maker) updates(api string) bool {
	var major, minor int
	n, err := fmt.Sscanf(api, "%d.%d", &major, &minor)
	return m.kind == docker.kind && n == 2 && err == nil && (major > 1 || minor >= updateMinor)
}

// fields are an update's lists of rates.
var fields = [...]string{
	limit.RBPS: "BlkioDeviceReadBps", limit.WBPS: "BlkioDeviceWriteBps",
	limit.RIOPS: "BlkioDeviceReadIOps", limit.WIOPS: "BlkioDeviceWriteIOps",
}

// An Update is the limits that an engine shall store for a container from now on.
type Update struct {
	Kind          string // the engine's
	Path          string // of the question
	After, Before []byte // what is told, and what takes that back
}

// UpdateOf applies changes to the limits that the engine stores for a container
// (Target.Lasting). Unset rates stay, and unlimited ones are removed. Devices are compared by
// number, and new ones are named by path. nil: nothing would change.
func UpdateOf(lasting string, r *targets.Record, changes []targets.Recorded) (*Update, error) {
	before, after := map[string][]throttle{}, map[string][]throttle{}
	for _, key := range limit.Keys {
		all := slices.Clone(r.Limits)
		for _, c := range changes {
			all = change(all, c, key)
		}
		if was, is := rates(r.Limits, key), rates(all, key); !slices.Equal(was, is) {
			before[fields[key]], after[fields[key]] = was, is
		}
	}
	if len(after) == 0 {
		return nil, nil
	}
	kind, id, _ := strings.Cut(lasting, ":")
	u := &Update{Kind: kind, Path: fmt.Sprintf("/v1.%d/containers/%s/update", updateMinor, id)}
	var err error
	if u.After, err = json.Marshal(after); err == nil {
		u.Before, err = json.Marshal(before)
	}
	return u, err
}

// rates returns the rates of a key, device by device. Without any it returns an empty list and
// not nil, because the engine would keep its rates for null.
func rates(all []targets.Recorded, key limit.Key) []throttle {
	list := []throttle{}
	for _, l := range all {
		if n, bound := l.Limit.Get(key).Number(); bound {
			list = append(list, throttle{l.Path, n})
		}
	}
	return list
}

// change sets one rate, for all paths of the device.
func change(all []targets.Recorded, c targets.Recorded, key limit.Key) []targets.Recorded {
	rate := c.Limit.Get(key)
	if !rate.IsSet() {
		return all
	}
	found := false
	for i, l := range all {
		if l.Err == nil && l.Device == c.Device || l.Path == c.Path {
			all[i].Limit, found = l.Limit.With(key, rate), true
		}
	}
	if found {
		return all
	}
	return append(all, targets.Recorded{Path: c.Path, Device: c.Device, Limit: limit.Limit{}.With(key, rate)})
}

// Update tells the engine what to store. For a running container the engine may also write
// rules, with the limits that the container was created with.
func (k Kind) Update(ctx context.Context, path string, body []byte) error {
	socket, err := k.socket("")
	if err != nil {
		return err
	}
	if err := (daemon{socket}).post(ctx, path, body); err != nil {
		return fmt.Errorf("change the limits that %s keeps: %w", k.Maker.title, err)
	}
	return nil
}

// Asked returns the engine's socket.
func (k Kind) Asked() (socket string, err error) { return k.socket("") }
