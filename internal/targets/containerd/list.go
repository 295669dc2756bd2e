package containerd

import (
	"context"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/targets"
)

// dockers is the namespace of Docker's own containers, which are docker:NAME.
const dockers = "moby"

// filterMost bounds the ids that one question names.
const filterMost = 16

// request asks for containers (ListContainersRequest): of all that any filter of it describes, and without one for all.
// Each container comes with the whole of its specification, 10 kB and more.
func request(ids []string) (message []byte) {
	if len(ids) > filterMost {
		return nil
	}
	for _, id := range ids {
		if !targets.IsContainerID(id) { // the beginning of one, say
			return nil
		}
		message = grpc.AppendString(message, 1, "id=="+id)
	}
	return message
}

// List lists the containers of all namespaces with their labels, also of those that do not run,
// but not Docker's. With whole ids of containers it lists these, or others too.
func (k Kind) List(ctx context.Context, ids ...string) ([]targets.Listed, error) {
	var all []targets.Listed
	var first error
	answered := false
	for _, socket := range k.sockets() {
		some, err := k.list(ctx, socket, request(ids))
		if err == nil {
			all, answered = append(all, some...), true
		} else if first == nil {
			first = explain(k.Name(), socket, err)
		}
	}
	if answered {
		return all, nil
	}
	return nil, first
}

// list is List for one containerd.
func (k Kind) list(ctx context.Context, socket string, request []byte) (all []targets.Listed, err error) {
	namespaces, err := client{socket, ""}.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if !isIdentifier(namespace) || namespace == dockers {
			continue
		}
		answer, err := client{socket, namespace}.call(ctx, "/containerd.services.containers.v1.Containers/List", request)
		if err == nil {
			err = grpc.Fields(answer, func(number grpc.FieldNumber, item []byte) error {
				if number != 1 {
					return nil
				}
				id, labels, err := labelled(item)
				if err == nil && isIdentifier(id) {
					name := namespace + "/" + id
					all = append(all, targets.Listed{Kind: k.Name(), Name: name, Names: []string{name}, ID: id, Labels: labels})
				}
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// labelled reads a Container: its id, and its labels.
func labelled(item []byte) (id string, labels map[string]string, err error) {
	labels = map[string]string{}
	err = grpc.Fields(item, func(number grpc.FieldNumber, value []byte) error {
		switch number {
		case 1:
			id = string(value)
		case 2:
			return grpc.Entry(value, labels)
		}
		return nil
	})
	return id, labels, err
}
