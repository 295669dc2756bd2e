package containerd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/daemon/grpc"
)

// A client asks containerd about one namespace.
type client struct{ socket, namespace string }

func (c client) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	var metadata []grpc.Pair
	if c.namespace != "" {
		metadata = append(metadata, grpc.Pair{Name: "containerd-namespace", Value: c.namespace})
	}
	return grpc.Call(ctx, c.socket, method, request, metadata...)
}

// find returns the id of the container with this id, or of the only one whose id begins with
// it.
func (c client) find(ctx context.Context, id string) (string, error) {
	ids, err := c.containers(ctx, id)
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

// containers lists the ids that begin with prefix. (services/containers/v1: List; the filter's
// operator ~= matches a regular expression, in which the dots of an identifier match any
// character, so the results are compared again.)
func (c client) containers(ctx context.Context, prefix string) ([]string, error) {
	filter := "id~=^" + prefix
	answer, err := c.call(ctx, "/containerd.services.containers.v1.Containers/List", grpc.AppendString(nil, 1, filter))
	if err != nil {
		return nil, err
	}
	all, err := grpc.Names(answer)
	return slices.DeleteFunc(all, func(id string) bool { return !strings.HasPrefix(id, prefix) || !isIdentifier(id) }), err
}

// namespaces lists them (services/namespaces/v1: List).
func (c client) namespaces(ctx context.Context) ([]string, error) {
	answer, err := c.call(ctx, "/containerd.services.namespaces.v1.Namespaces/List", nil)
	if err != nil {
		return nil, err
	}
	return grpc.Names(answer)
}

// pid is a container's first process; 0 if it is not running (services/tasks/v1: Get, where the
// process has its number as its third field).
func (c client) pid(ctx context.Context, id string) (int, error) {
	answer, err := c.call(ctx, "/containerd.services.tasks.v1.Tasks/Get", grpc.AppendString(nil, 1, id))
	var status *grpc.Status
	if errors.As(err, &status) && status.Code == grpc.NotFound {
		return 0, nil
	}
	if err != nil {
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
