package pod

import (
	"context"
	"maps"
	"path"
	"strings"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/targets"
)

// Within returns a function that gives the running container whose group has a path, and the zero value for
// other groups: it must be named after the container, and be in the group that kubelet has made for the
// container's pod. A runtime that cannot be asked has none.
func (k Kind) Within(ctx context.Context) func(group string) targets.InPod {
	all := map[string]running{} // by id
	sockets, _ := k.sockets()
	for _, socket := range sockets {
		maps.Copy(all, runtime{socket}.running(ctx))
	}
	return func(group string) targets.InPod {
		id := targets.CalledAfter(group)
		c, is := all[id]
		monitors := strings.HasSuffix(group, "-conmon-"+id+".scope") // CRI-O's, beside the container
		if !is || monitors || !targets.IsCalledAfter(group, id) || !targets.IsPodOf(path.Dir(group), c.uid) {
			return targets.InPod{}
		}
		return c.InPod
	}
}

// A running container, with its pod's UID.
type running struct {
	targets.InPod
	uid string
}

// running lists the containers that run, of pods that are ready, by their ids.
func (r runtime) running(ctx context.Context) map[string]running {
	sandboxes, err := r.sandboxes(ctx, nil, namesAlone)
	if err != nil {
		return nil
	}
	of := map[string]sandbox{}
	for _, s := range sandboxes {
		of[s.id] = s
	}
	// ListContainers: its filter's state is the second field, a message with a number, and 1 is running.
	state := grpc.AppendString(nil, 2, string(grpc.AppendNumber(nil, 1, 1)))
	all := map[string]running{}
	err = cri.List(ctx, r.socket, cri.Containers, state, grpc.Pick{Fields: []grpc.FieldNumber{1, 2, 3}}, func(item []byte, _ bool) error {
		id, in, name, err := containerOf(item)
		if s, is := of[in]; err == nil && is && id != "" && isName(s.namespace) && isName(s.name) && isName(name) {
			all[id] = running{targets.InPod{Namespace: s.namespace, Pod: s.name, Container: name}, s.uid}
		}
		return err
	})
	if err != nil {
		return nil
	}
	return all
}

// containerOf reads a Container: its id, its sandbox's, and its metadata's name.
func containerOf(item []byte) (id, sandbox, name string, err error) {
	err = grpc.Fields(item, func(number grpc.FieldNumber, value []byte) error {
		switch number {
		case 1:
			id = string(value)
		case 2:
			sandbox = string(value)
		case 3:
			return grpc.Fields(value, func(number grpc.FieldNumber, text []byte) error {
				if number == 1 {
					name = string(text)
				}
				return nil
			})
		}
		return nil
	})
	return id, sandbox, name, err
}
