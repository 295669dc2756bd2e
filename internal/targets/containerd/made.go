package containerd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/targets"
)

const (
	containers = "/containerd.services.containers.v1.Containers/"
	tasks      = "/containerd.services.tasks.v1.Tasks/"
)

const (
	// filterMost bounds the ids that one question names.
	filterMost = 16
	// labelsMost bounds the id and the needed labels of one container, in bytes, so that no user can fill memory. A label
	// has at most 4096.
	labelsMost = 64 << 10
	// listMost bounds them for all containers.
	listMost = 256 << 20
)

// A made container is one that there is, whether or not it runs.
type made struct {
	id      string
	labels  map[string]string
	unknown string // why its labels are not known; empty: they are
}

// A question asks for containers.
type question struct {
	prefix string   // of their ids
	ids    []string // whole ones, of which there are few; none: all
	need   targets.Need
}

// is reports whether a container is asked for. (The filter's operator ~= matches a regular expression, in which the dots of
// an identifier match any character.)
func (q question) is(id string) bool {
	return isIdentifier(id) && strings.HasPrefix(id, q.prefix) && (len(q.ids) == 0 || slices.Contains(q.ids, id))
}

// request asks for containers that any filter of it describes, and without one for all (ListContainersRequest).
func (q question) request() (message []byte) {
	for _, id := range q.ids {
		message = grpc.AppendString(message, 1, "id=="+id)
	}
	if q.prefix != "" {
		message = grpc.AppendString(message, 1, "id~=^"+q.prefix)
	}
	return message
}

// list calls a function for each container that a question asks for (services/containers/v1: ListStream). Each comes with the
// whole of its specification, 10 kB and more, of which nothing is kept: together they can be larger than any message.
func (c client) list(ctx context.Context, q question, each func(made) error) error {
	seen, size := map[string]bool{}, 0
	take := func(item []byte, whole bool) error {
		one, err := madeOf(item)
		if err != nil || seen[one.id] || !q.is(one.id) {
			return err
		}
		if !whole {
			one.unknown = tooMany(labelsMost)
		}
		seen[one.id] = true
		if size += len(item); size > listMost {
			return fmt.Errorf("read answer: the labels of its containers have more than %d MiB", listMost>>20)
		}
		return each(one)
	}
	err := c.each(ctx, "ListStream", q.request(), q.need, take)
	if grpc.IsCode(err, grpc.Unimplemented) { // before containerd 1.2
		err = c.each(ctx, "List", q.request(), q.need, take)
	}
	switch {
	case grpc.IsCode(err, grpc.Unimplemented):
		return c.criList(ctx, q, each)
	case grpc.IsCode(err, grpc.ResourceExhausted):
		return c.listUnsent(ctx, q, seen, take, each)
	}
	return err
}

// tooMany says that the labels of a container do not fit.
func tooMany(most int) string {
	return fmt.Sprintf("the labels that its plan can depend on have more than %d KiB", most>>10)
}

// each asks containerd for containers, for their ids and those of their labels that are needed.
func (c client) each(ctx context.Context, method string, request []byte, need targets.Need, take func(item []byte, whole bool) error) error {
	pick := grpc.Pick{Fields: []grpc.FieldNumber{1, 2}, Most: labelsMost, Needs: map[grpc.FieldNumber]func(string) bool{2: need.Label}}
	return grpc.Each(ctx, c.socket, containers+method, request, pick, take, c.metadata()...)
}

// listUnsent lists the containers that containerd has not sent. One that is larger than it may send ends its list, and it
// does not say which one: that has a specification of megabytes, as of a pod with such an environment. Those that run are asked
// for one by one.
func (c client) listUnsent(ctx context.Context, q question, seen map[string]bool, take func(item []byte, whole bool) error, each func(made) error) error {
	ids, err := c.running(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if seen[id] || !q.is(id) {
			continue
		}
		err := c.each(ctx, "Get", grpc.AppendString(nil, 1, id), q.need, take)
		switch {
		case grpc.IsCode(err, grpc.ResourceExhausted):
			seen[id] = true
			err = each(made{id: id, unknown: "its specification is larger than containerd sends (max_send_message_size in its configuration)"})
		case grpc.IsCode(err, grpc.NotFound): // it was removed meanwhile
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// running lists the ids of the containers that have a process (services/tasks/v1: List, where a task has its id as its
// second field).
func (c client) running(ctx context.Context) (ids []string, err error) {
	err = grpc.Each(ctx, c.socket, tasks+"List", nil, grpc.Pick{Fields: []grpc.FieldNumber{2}, Most: labelsMost}, func(task []byte, _ bool) error {
		return grpc.Fields(task, func(_ grpc.FieldNumber, id []byte) error {
			ids = append(ids, string(id))
			return nil
		})
	}, c.metadata()...)
	return ids, err
}

// madeOf reads a Container: its id, and its labels.
func madeOf(item []byte) (one made, err error) {
	one.labels = map[string]string{}
	err = grpc.Fields(item, func(number grpc.FieldNumber, value []byte) error {
		switch number {
		case 1:
			one.id = string(value)
		case 2:
			return grpc.Entry(value, one.labels)
		}
		return nil
	})
	return one, err
}
