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
	// ThingMost bounds what is picked of one thing. An object of Kubernetes has at most 1.5 MiB.
	ThingMost = 2 << 20
	// listMost bounds what is picked of all. A runtime sends far less in one message: containerd 16 MiB and
	// CRI-O 80 MiB, unless it is told otherwise.
	listMost = 256 << 20
)

// List calls a function for each thing that a filter describes, with what is picked of it. The message is valid until the
// function returns. whole is false if that is more than ThingMost: the rest is left out, so that one thing keeps no other
// from being listed. Where the list is larger than the runtime sends in one message, it is asked for in several.
func List(ctx context.Context, socket string, what Listing, filter []byte, pick grpc.Pick, each func(thing []byte, whole bool) error) error {
	pick.Most = ThingMost
	request, size := grpc.AppendString(nil, 1, string(filter)), 0
	ask := func(method string) error {
		return grpc.Each(ctx, socket, Service+method, request, pick, func(thing []byte, whole bool) error {
			if size += len(thing); size > listMost {
				return fmt.Errorf("read answer: %s has more than %d MiB that weir needs", method, listMost>>20)
			}
			return each(thing, whole)
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
