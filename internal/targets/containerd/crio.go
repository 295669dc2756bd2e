package containerd

import (
	"context"
	"strings"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/targets"
)

// criNamespace is containerd's namespace for the containers of pods (containerd, internal/cri/constants). Those of a runtime
// that speaks the CRI alone, as CRI-O, are named as if they were in it, too.
const criNamespace = "k8s.io"

// Fields of the CRI's messages Container and ContainerStatus, and a state of theirs.
const (
	listedState, listedLabels = 6, 8
	statusState               = 3
	exited                    = 2
)

// criList is list over the CRI (ListContainers). Those that have ended are left out.
func (c client) criList(ctx context.Context, q question, each func(made) error) error {
	if c.namespace != criNamespace {
		return nil
	}
	var filter []byte
	if id := strings.Join(q.ids, " ") + q.prefix; targets.IsContainerID(id) { // one alone
		filter = grpc.AppendString(nil, 1, id)
	}
	pick := grpc.Pick{Fields: []grpc.FieldNumber{1, listedState, listedLabels}, Needs: map[grpc.FieldNumber]func(string) bool{listedLabels: q.need.Label}}
	return cri.List(ctx, c.socket, cri.Containers, filter, pick, func(item []byte, whole bool) error {
		one := made{labels: map[string]string{}}
		if !whole {
			one.unknown = tooMany(cri.ThingMost)
		}
		err := grpc.Fields(item, func(number grpc.FieldNumber, value []byte) error {
			switch number {
			case 1:
				one.id = string(value)
			case listedLabels:
				return grpc.Entry(value, one.labels)
			}
			return nil
		})
		if err != nil || !q.is(one.id) {
			return err
		}
		if state, err := grpc.Number(item, listedState); err != nil || state == exited {
			return err
		}
		return each(one)
	})
}

// criPID is pid over the CRI (a verbose ContainerStatus). A container that has ended can have the number of its process
// still.
func (c client) criPID(ctx context.Context, id string) (int, error) {
	answer, err := c.call(ctx, cri.Service+"ContainerStatus", grpc.AppendNumber(grpc.AppendString(nil, 1, id), 2, 1))
	if grpc.IsCode(err, grpc.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ended := false
	if err := grpc.Fields(answer, func(number grpc.FieldNumber, status []byte) error {
		if number != 1 {
			return nil
		}
		state, err := grpc.Number(status, statusState)
		ended = state == exited
		return err
	}); err != nil || ended {
		return 0, err
	}
	return cri.PID(answer)
}
