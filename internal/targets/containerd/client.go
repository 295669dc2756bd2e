package containerd

import (
	"context"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/targets"
)

// A client asks containerd, or CRI-O, about one namespace.
type client struct{ socket, namespace string }

// noLabel is for questions about ids alone.
var noLabel = targets.Need{Label: func(string) bool { return false }}

func (c client) metadata() (all []grpc.Pair) {
	if c.namespace != "" {
		all = append(all, grpc.Pair{Name: "containerd-namespace", Value: c.namespace})
	}
	return all
}

func (c client) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	return grpc.Call(ctx, c.socket, method, request, c.metadata()...)
}

// find returns the id of the container with this id, or of the only one whose id begins with
// it. containerd looks through all that it has for a beginning, and for an id at one place.
func (c client) find(ctx context.Context, id string) (string, error) {
	is := false
	err := c.each(ctx, "Get", grpc.AppendString(nil, 1, id), noLabel, func(item []byte, _ bool) error {
		one, err := madeOf(item)
		is = one.id == id
		return err
	})
	switch {
	case is, grpc.IsCode(err, grpc.ResourceExhausted): // it is there, and too large to be sent
		return id, nil
	case grpc.IsCode(err, grpc.NotFound) && targets.IsContainerID(id):
		return "", errNone
	case err != nil && !grpc.IsCode(err, grpc.NotFound) && !grpc.IsCode(err, grpc.Unimplemented):
		return "", err
	}
	ids, err := c.ids(ctx, id)
	if err != nil {
		return "", err
	}
	for _, one := range ids {
		if one == id {
			return id, nil
		}
	}
	switch len(ids) {
	case 0:
		return "", errNone
	case 1:
		return ids[0], nil
	}
	return "", &ambiguity{ids}
}

// ids lists those of the containers that begin with prefix.
func (c client) ids(ctx context.Context, prefix string) (all []string, err error) {
	err = c.list(ctx, question{prefix: prefix, need: noLabel}, func(one made) error {
		all = append(all, one.id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// namespaces lists them (services/namespaces/v1: List).
func (c client) namespaces(ctx context.Context) ([]string, error) {
	answer, err := c.call(ctx, "/containerd.services.namespaces.v1.Namespaces/List", nil)
	if grpc.IsCode(err, grpc.Unimplemented) {
		return []string{criNamespace}, nil // of what speaks the CRI alone
	}
	if err != nil {
		return nil, err
	}
	return grpc.Names(answer)
}

// pid is a container's first process; 0 if it is not running (services/tasks/v1: Get, where the
// process has its number as its third field).
func (c client) pid(ctx context.Context, id string) (int, error) {
	answer, err := c.call(ctx, tasks+"Get", grpc.AppendString(nil, 1, id))
	switch {
	case grpc.IsCode(err, grpc.NotFound):
		return 0, nil
	case grpc.IsCode(err, grpc.Unimplemented):
		return c.criPID(ctx, id)
	case err != nil:
		return 0, err
	}
	return pidIn(answer)
}

// pidIn reads the process of a task.
func pidIn(answer []byte) (int, error) {
	pid := 0
	err := grpc.Fields(answer, func(number grpc.FieldNumber, process []byte) error {
		if number != 1 {
			return nil
		}
		n, err := grpc.Number(process, 3)
		pid = int(n)
		return err
	})
	return pid, err
}
