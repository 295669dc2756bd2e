package pod

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// entry is a label of a filter, or of a pod.
func entry(name, value string) []byte {
	return grpc.AppendString(grpc.AppendString(nil, 1, name), 2, value)
}

// A runtime with many pods is asked for the one that is named, by the labels that kubelet gives it. A pod that somebody
// else made, without such labels, is found all the same.
func TestOnePodOfManyIsAskedFor(t *testing.T) {
	const pods = 20
	told := 0 // pods of the last answers
	socket := grpctest.Serve(t, func(method string, _ http.Header, request []byte) (a grpctest.Answer) {
		if method != service+"ListPodSandbox" {
			return a
		}
		var filters [][]byte
		if err := grpc.Fields(request, func(_ grpc.FieldNumber, filter []byte) error {
			return grpc.Fields(filter, func(number grpc.FieldNumber, value []byte) error {
				if number == 3 {
					filters = append(filters, bytes.Clone(value))
				}
				return nil
			})
		}); err != nil {
			t.Error(err)
		}
		for i := range pods {
			s := grpc.AppendString(grpc.AppendString(nil, 1, fmt.Sprint("s", i)), 2, string(grpc.AppendString(grpc.AppendString(grpc.AppendString(nil, 1, fmt.Sprint("web-", i)), 2, fmt.Sprint("u", i)), 3, "prod")))
			matches := true
			for _, name := range []string{uidLabel, nameLabel, namespaceLabel} {
				label := entry(name, map[string]string{uidLabel: fmt.Sprint("u", i), nameLabel: fmt.Sprint("web-", i), namespaceLabel: "prod"}[name])
				if i > 0 { // crictl made the first one
					s = grpc.AppendString(s, 5, string(label))
				}
				for _, f := range filters {
					is := bytes.HasPrefix(f, grpc.AppendString(nil, 1, name))
					matches = matches && (!is || i != 0 && bytes.Equal(f, label))
				}
			}
			if matches {
				told++
				a.Message = grpc.AppendString(a.Message, 1, string(s))
			}
		}
		return a
	})
	k := host(t, cgroupfs.V2, nil)
	k.Endpoint = "unix://" + socket
	for name, want := range map[string]int{"u7": 1, "u0": pods, "prod/web-7": 1, "prod/web-0": pods, "u99": pods, "prod/web-99": pods} {
		told = 0
		_, err := k.Resolve(t.Context(), name)
		exists := !strings.HasSuffix(name, "99")
		if err == nil || strings.Contains(err.Error(), "no such pod runs") == exists || told != want {
			t.Errorf("%s: %v; %d pods were told of, want %d", name, err, told, want)
		}
		if strings.Contains(name, "/") {
			continue
		}
		told = 0
		all, err := k.List(t.Context(), name)
		is := len(all) > 0 && (all[0].UID == name || len(all) == pods)
		if err != nil || !is || told != want {
			t.Errorf("%s: %+v, %v; %d pods were told of, want %d", name, all, err, told, want)
		}
	}
	told = 0
	if all, err := k.List(t.Context()); err != nil || len(all) != pods || told != pods {
		t.Errorf("%d of %d, %v", len(all), told, err)
	}
}
