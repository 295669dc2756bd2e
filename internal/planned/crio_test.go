package planned

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
)

// crio answers for the pod of newPods as CRI-O does: over the CRI alone.
func crio(t *testing.T, annotations map[string]string) (socket string) {
	t.Helper()
	status := func(pid string) []byte {
		return grpc.AppendString(grpc.AppendString(nil, 1, message(dbID)), 2, message("info", `{"pid":`+pid+`}`))
	}
	return "unix://" + grpctest.Serve(t, func(method string, _ http.Header, _ []byte) grpctest.Answer {
		var m []byte
		switch strings.TrimPrefix(method, cri.Service) {
		case "ListPodSandbox":
			pod := message(webID, message("web", podUID, "prod"))
			for key, value := range annotations {
				pod += string(grpc.AppendString(nil, 6, message(key, value)))
			}
			m = grpc.AppendString(nil, 1, pod)
		case "PodSandboxStatus":
			m = status("4900")
		case "ListContainers":
			main := grpc.AppendNumber([]byte(message(dbID, webID)), 6, 1)
			for _, label := range []string{message("io.kubernetes.container.name", "main"), message("io.kubernetes.pod.uid", podUID)} {
				main = grpc.AppendString(main, 8, label)
			}
			m = grpc.AppendString(nil, 1, string(main))
		case "ContainerStatus":
			m = status("4910")
		default:
			return grpctest.Answer{Code: grpc.Unimplemented, Text: "unknown service"}
		}
		return grpctest.Answer{Message: m}
	})
}

// With CRI-O a container's limits follow its annotations and plans, come back after a change by somebody else, and go with
// them: they are on record.
func TestContainersOfCRIO(t *testing.T) {
	annotations := map[string]string{"weir.io/write.main": "5M"}
	w := newPods(t, nil)
	socket := crio(t, annotations)
	w.host = w.host.With("containerd", socket).With("pod", socket)
	const key = "containerd:k8s.io/" + dbID
	look := func(what, plans, want string) {
		t.Helper()
		m := w.manager(t, plans)
		m.Config.Annotated = true
		for _, names := range [][]string{nil, {dbID}} {
			all, err := m.OfKind(t.Context(), "containerd", names)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for i := range all {
				if all[i].Key() != key {
					t.Errorf("%s: %s", what, all[i].Key())
				}
				if err := m.Put(t.Context(), &all[i]); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		limit := ""
		if want != "" {
			limit = "254:0 rbps=- wbps=" + want + " riops=- wiops=-; 254:16 rbps=- wbps=" + want + " riops=- wiops=-;"
		}
		r, err := recordOf(w.host.Root, key)
		if got := w.inForce(t, dbID); got != limit || err != nil || (r != nil) != (want != "") {
			t.Errorf("%s: in force: %q, want %q; on record: %+v, %v", what, got, limit, r, err)
		}
	}
	const plan = "plans: {a: {write: 2MB/s}}\nassign: [{containerd: 'k8s.io/*', plan: a}]"
	look("annotated", "", "5000000")
	annotations["weir.io/write.main"] = "4M"
	look("another annotation", "", "4000000")
	rules := filepath.Join(w.host.Root, "sys/fs/cgroup/kubepods/pod"+podUID, dbID, "io.max")
	if err := os.WriteFile(rules, nil, 0o600); err != nil { // somebody else takes them away
		t.Fatal(err)
	}
	look("drift", "", "4000000")
	look("a plan beside it", plan, "2000000")
	delete(annotations, "weir.io/write.main")
	look("a plan", plan, "2000000")
	look("nothing", "", "")
}
