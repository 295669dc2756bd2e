package agent

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
)

// answer answers what weird asks containerd, of its containers and, over the CRI, of its pods. Only what weird reads is in
// the answers.
func (r *podRuntime) answer(method string, _ http.Header, request []byte) grpctest.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch method[strings.LastIndexByte(method, '/')+1:] {
	case "List": // of namespaces
		return grpctest.Answer{Message: item("k8s.io")}
	case "ListStream": // of containers
		return grpctest.Answer{Message: r.containers(request)}
	case "Get": // a container, or its task
		if strings.Contains(method, "Containers") {
			return grpctest.Answer{Message: r.containers(request)}
		}
		return r.task(textIn(request, 1))
	case "ListPodSandbox":
		return grpctest.Answer{Message: r.sandboxes(request)}
	case "PodSandboxStatus":
		return r.status(textIn(request, 1))
	case "ListContainers":
		var all []byte
		for _, p := range r.pods {
			if strings.Contains(string(request), p.of.GetId()) {
				all = append(all, item(p.main.GetId())...)
			}
		}
		return grpctest.Answer{Message: all}
	}
	return grpctest.Answer{Code: grpc.Unimplemented, Text: method}
}

// containers are those that one of the filters of a request names, or all.
func (r *podRuntime) containers(request []byte) (all []byte) {
	for _, p := range r.pods {
		for id, labels := range map[string]map[string]string{p.main.GetId(): p.main.GetLabels(), p.of.GetId(): p.of.GetLabels()} {
			if len(request) == 0 || strings.Contains(string(request), id) {
				all = append(all, item(id, entries(2, labels))...)
			}
		}
	}
	return all
}

func (r *podRuntime) task(id string) grpctest.Answer {
	for _, p := range r.pods {
		switch id {
		case p.main.GetId():
			return grpctest.Answer{Message: message(1, grpc.AppendNumber(nil, 3, uint64(p.sleep.Process.Pid)))}
		case p.of.GetId():
			return grpctest.Answer{Message: message(1, grpc.AppendNumber(nil, 3, uint64(p.pause.Process.Pid)))}
		}
	}
	return grpctest.Answer{Code: grpc.NotFound, Text: id}
}

// sandboxes are those that have the UID of a request's filter, or all.
func (r *podRuntime) sandboxes(request []byte) (all []byte) {
	for _, p := range r.pods {
		if strings.Contains(string(request), "io.kubernetes.pod.uid") && !strings.Contains(string(request), p.of.GetUid()) {
			continue
		}
		meta := grpc.AppendString(grpc.AppendString(grpc.AppendString(nil, 1, p.of.GetName()), 2, p.of.GetUid()), 3, p.of.GetNamespace())
		all = append(all, item(p.of.GetId(), message(2, meta), entries(5, p.of.GetLabels()), entries(6, p.of.GetAnnotations()))...)
	}
	return all
}

func (r *podRuntime) status(id string) grpctest.Answer {
	i := slices.IndexFunc(r.pods, func(p runtimePod) bool { return p.of.GetId() == id })
	if i < 0 {
		return grpctest.Answer{Code: grpc.NotFound, Text: id}
	}
	info, err := json.Marshal(map[string]int{"pid": r.pods[i].pause.Process.Pid})
	if err != nil {
		return grpctest.Answer{Code: grpc.NotFound, Text: err.Error()}
	}
	return grpctest.Answer{Message: message(2, grpc.AppendString(grpc.AppendString(nil, 1, "info"), 2, string(info)))}
}

// message is a field of another message.
func message(number grpc.FieldNumber, fields []byte) []byte {
	return grpc.AppendString(nil, number, string(fields))
}

// item is what lists have: a message whose first field is a name.
func item(name string, more ...[]byte) []byte {
	return message(1, slices.Concat(append([][]byte{grpc.AppendString(nil, 1, name)}, more...)...))
}

func entries(number grpc.FieldNumber, of map[string]string) (all []byte) {
	for name, value := range of {
		all = append(all, message(number, grpc.AppendString(grpc.AppendString(nil, 1, name), 2, value))...)
	}
	return all
}

// textIn is a field of a message; empty: it has none.
func textIn(m []byte, number grpc.FieldNumber) (text string) {
	_ = grpc.Fields(m, func(n grpc.FieldNumber, value []byte) error {
		if n == number {
			text = string(value)
		}
		return nil
	})
	return text
}
