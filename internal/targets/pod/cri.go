package pod

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/targets"
)

// A runtime is a container runtime with a CRI socket.
type runtime struct{ socket string }

const service = cri.Service

// A sandbox is what the containers of a pod share, and the process that holds it.
type sandbox struct {
	id, namespace, name, uid string
	labels, annotations      map[string]string
	isCut                    bool // it has more of them than are kept
}

// namesAlone is for questions in which neither labels nor annotations are needed.
var namesAlone = targets.Need{Label: func(string) bool { return false }, Annotation: func(string) bool { return false }}

// sandboxes lists those that are ready. (ListPodSandbox: its filter's state is a message
// with a number, and 0 is ready; its labels are entries of a map.) With labels it lists those that have them all. Of each
// it has the labels and annotations that are needed.
func (r runtime) sandboxes(ctx context.Context, labels map[string]string, need targets.Need) ([]sandbox, error) {
	filter := grpc.AppendString(nil, 2, string(grpc.AppendNumber(nil, 1, 0)))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		filter = grpc.AppendString(filter, 3, string(grpc.AppendString(grpc.AppendString(nil, 1, name), 2, labels[name])))
	}
	var all []sandbox
	pick := grpc.Pick{Fields: []grpc.FieldNumber{1, 2, 5, 6}, Needs: map[grpc.FieldNumber]func(string) bool{5: need.Label, 6: need.Annotation}}
	err := cri.List(ctx, r.socket, cri.Sandboxes, filter, pick, func(item []byte, whole bool) error {
		s, err := sandboxOf(item)
		s.isCut = !whole
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// sandboxOf reads a PodSandbox: its id, its metadata's name, uid and namespace, its labels and its
// annotations.
func sandboxOf(item []byte) (s sandbox, err error) {
	s.labels, s.annotations = map[string]string{}, map[string]string{}
	err = grpc.Fields(item, func(number grpc.FieldNumber, value []byte) error {
		switch number {
		case 1:
			s.id = string(value)
		case 5:
			return grpc.Entry(value, s.labels)
		case 6:
			return grpc.Entry(value, s.annotations)
		case 2:
			return grpc.Fields(value, func(number grpc.FieldNumber, text []byte) error {
				switch number {
				case 1:
					s.name = string(text)
				case 2:
					s.uid = string(text)
				case 3:
					s.namespace = string(text)
				}
				return nil
			})
		}
		return nil
	})
	return s, err
}

// containers lists the ids of a sandbox's containers, also of those that have ended.
// (ListContainers: pod_sandbox_id is the filter's third field.)
func (r runtime) containers(ctx context.Context, s sandbox) ([]string, error) {
	var ids []string
	err := cri.List(ctx, r.socket, cri.Containers, grpc.AppendString(nil, 3, s.id), grpc.Pick{Fields: []grpc.FieldNumber{1}}, func(item []byte, _ bool) error {
		id, _, _, err := containerOf(item)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// pid is a sandbox's first process; 0 or less: the runtime does not tell.
func (r runtime) pid(ctx context.Context, s sandbox) (int, error) {
	answer, err := grpc.Call(ctx, r.socket, service+"PodSandboxStatus", grpc.AppendNumber(grpc.AppendString(nil, 1, s.id), 2, 1))
	if err != nil {
		return 0, err
	}
	return cri.PID(answer)
}
