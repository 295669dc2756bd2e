package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-io/weir/internal/daemon/grpc"
)

// A runtime is a container runtime with a CRI socket.
type runtime struct{ socket string }

// service is the version of the CRI that containerd 1.6, CRI-O 1.20 and later have.
const service = "/runtime.v1.RuntimeService/"

func (r runtime) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	return grpc.Call(ctx, r.socket, service+method, request)
}

// A sandbox is what the containers of a pod share, and the process that holds it.
type sandbox struct {
	id, namespace, name, uid string
	labels, annotations      map[string]string
}

// sandboxes lists those that are ready. (ListPodSandbox: its filter's state is a message
// with a number, and 0 is ready; its labels are entries of a map.) With labels it lists those that have them all.
func (r runtime) sandboxes(ctx context.Context, labels map[string]string) ([]sandbox, error) {
	filter := grpc.AppendString(nil, 2, string(grpc.AppendNumber(nil, 1, 0)))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		filter = grpc.AppendString(filter, 3, string(grpc.AppendString(grpc.AppendString(nil, 1, name), 2, labels[name])))
	}
	answer, err := r.call(ctx, "ListPodSandbox", grpc.AppendString(nil, 1, string(filter)))
	if err != nil {
		return nil, err
	}
	var all []sandbox
	err = grpc.Fields(answer, func(number grpc.FieldNumber, item []byte) error {
		if number != 1 {
			return nil
		}
		s, err := sandboxOf(item)
		all = append(all, s)
		return err
	})
	return all, err
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
	answer, err := r.call(ctx, "ListContainers", grpc.AppendString(nil, 1, string(grpc.AppendString(nil, 3, s.id))))
	if err != nil {
		return nil, err
	}
	return grpc.Names(answer)
}

// pid is a sandbox's first process. The CRI has no field for it: containerd and CRI-O report it
// in the JSON that they add to a verbose status, under "info".
func (r runtime) pid(ctx context.Context, s sandbox) (int, error) {
	answer, err := r.call(ctx, "PodSandboxStatus", grpc.AppendNumber(grpc.AppendString(nil, 1, s.id), 2, 1))
	if err != nil {
		return 0, err
	}
	return pidIn(answer)
}

// pidIn reads the process of a verbose status; 0 if it has none.
func pidIn(answer []byte) (int, error) {
	var info struct{ Pid int }
	err := grpc.Fields(answer, func(number grpc.FieldNumber, entry []byte) error {
		if number != 2 {
			return nil
		}
		var key, value []byte
		if err := grpc.Fields(entry, func(number grpc.FieldNumber, part []byte) error {
			switch number {
			case 1:
				key = part
			case 2:
				value = part
			}
			return nil
		}); err != nil || string(key) != "info" {
			return err
		}
		if err := json.Unmarshal(value, &info); err != nil {
			return fmt.Errorf("read answer: the sandbox's info: %w", err)
		}
		return nil
	})
	return info.Pid, err
}
