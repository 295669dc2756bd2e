// Package cri has what is common to all questions over the CRI, the interface through which kubelet
// asks container runtimes (runtime.v1; k8s.io/cri-api, pkg/apis/runtime/v1/api.proto).
package cri

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weir-io/weir/internal/daemon/grpc"
)

// Service is the version of the CRI that containerd 1.6, CRI-O 1.20 and later have.
const Service = "/runtime.v1.RuntimeService/"

// A Listing is a method that lists things in one message, and one that does so in several. Runtimes have the second
// from Kubernetes 1.36 on.
type Listing struct{ whole, stream string }

// What a runtime lists.
var (
	Sandboxes  = Listing{"ListPodSandbox", "StreamPodSandboxes"}
	Containers = Listing{"ListContainers", "StreamContainers"}
)

const (
	// thingMost bounds one thing. An object of Kubernetes has at most 1.5 MiB.
	thingMost = 2 << 20
	// listMost bounds all that is told of the things. A runtime sends far less in one message: containerd 16 MiB and
	// CRI-O 80 MiB, unless it is told otherwise.
	listMost = 256 << 20
)

// List calls a function for each thing that a filter describes, with the fields that are wanted. The message is valid until
// the function returns. Where the list is larger than the runtime sends in one message, it is asked for in several.
func List(ctx context.Context, socket string, what Listing, filter []byte, fields []grpc.FieldNumber, each func(thing []byte) error) error {
	request, size := grpc.AppendString(nil, 1, string(filter)), 0
	ask := func(method string) error {
		return grpc.Each(ctx, socket, Service+method, request, grpc.Pick{Fields: fields, Most: thingMost}, func(thing []byte, whole bool) error {
			if size += len(thing); !whole || size > listMost {
				return fmt.Errorf("read answer: %s has more than %d MiB, or one of the list more than %d MiB", method, listMost>>20, thingMost>>20)
			}
			return each(thing)
		})
	}
	err := ask(what.whole)
	if grpc.IsCode(err, grpc.ResourceExhausted) { // nothing has come
		if again := ask(what.stream); !grpc.IsCode(again, grpc.Unimplemented) {
			return again
		}
	}
	return err
}

// PID is the first process of a container or a sandbox, of which a verbose status tells; 0 or less: it has none. The CRI has no field
// for it: containerd and CRI-O report it in JSON, under "info".
func PID(status []byte) (int, error) {
	var info struct{ Pid int }
	err := grpc.Fields(status, func(number grpc.FieldNumber, entry []byte) error {
		if number != 2 {
			return nil
		}
		of := map[string]string{}
		if err := grpc.Entry(entry, of); err != nil {
			return err
		}
		text, is := of["info"]
		if !is {
			return nil
		}
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return fmt.Errorf("read answer: its info: %w", err)
		}
		return nil
	})
	return info.Pid, err
}
