package node

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/containerd"
	"github.com/weir-io/weir/lab/environ"
)

const (
	// apiAddress is the first of the services' addresses: Kubernetes gives it to its API server. That listens
	// there itself, on the loopback interface, for there is no kube-proxy to lead to another address.
	apiAddress = "10.96.0.1"
	services   = "10.96.0.0/24"
	podNetwork = "10.97.0.0/24"

	// control has the certificates, and the database.
	control = "/var/lib/lab-node/control"
	// Admin is the file with which kubectl and helm find the API server.
	Admin = control + "/admin.conf"
)

// controlUnits are the programs of a cluster, in the order in which they are started. PATH is where the programs are.
var controlUnits = []struct{ name, kind, args string }{
	{"etcd", "notify", "--data-dir=" + control + "/etcd --unsafe-no-fsync --log-level=warn"},
	{"kube-apiserver", "notify", "--etcd-servers=http://127.0.0.1:2379 --secure-port=443 --advertise-address=" + apiAddress + " --service-cluster-ip-range=" + services +
		" --client-ca-file=" + control + "/ca.crt --tls-cert-file=" + control + "/api.crt --tls-private-key-file=" + control + "/api.key" +
		" --kubelet-client-certificate=" + control + "/api.crt --kubelet-client-key=" + control + "/api.key" +
		" --kubelet-preferred-address-types=InternalIP --service-account-issuer=https://kubernetes.default.svc --service-account-key-file=" + control + "/accounts.pub" +
		" --service-account-signing-key-file=" + control + "/accounts.key --authorization-mode=Node,RBAC"},
	{"kube-controller-manager", "simple", "--kubeconfig=" + control + "/controllers.conf --leader-elect=false --use-service-account-credentials --root-ca-file=" + control + "/ca.crt" +
		" --service-account-private-key-file=" + control + "/accounts.key"},
	{"kube-scheduler", "simple", "--kubeconfig=" + control + "/scheduler.conf --leader-elect=false"},
}

// controlUnit is systemd's.
const controlUnit = `[Unit]
StartLimitIntervalSec=0
[Service]
Type=KIND
ExecStart=PATH ARGS
Restart=always
RestartSec=2
TimeoutStartSec=5min
`

// network is the configuration of the pods' network: an address each, and a route to the node.
const network = `{"cniVersion": "1.0.0", "name": "lab", "plugins": [
{"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "subnet": "` + podNetwork + `", "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// NewCluster sets up a node with an API server, its database, Kubernetes' controllers and scheduler, and a kubelet
// that takes its pods from the API server, and starts them. weir is not among them. kubectl and helm find the API
// server by the environment.
func NewCluster(t testing.TB, e environ.Environ) *Node {
	t.Helper()
	n := &Node{Driver: "systemd", unified: e.Cgroups.Unified, weir: find(t, "weir"), image: image, api: true}
	n.write(t)
	t.Setenv("KUBECONFIG", Admin)
	t.Cleanup(func() { n.stopCluster(t) })
	run(t, "ip", "address", "replace", apiAddress+"/32", "dev", "lo")
	run(t, "modprobe", "--all", "veth", "bridge")
	run(t, "systemctl", "daemon-reload")
	run(t, "systemctl", "start", "containerd")
	n.importImages(t)
	for _, u := range controlUnits {
		began := time.Now()
		run(t, "systemctl", "start", u.name)
		t.Logf("%s was ready after %.1f s", u.name, time.Since(began).Seconds())
	}
	run(t, "systemctl", "start", "kubelet")
	lab.Await(t, 2*time.Minute, "the node to be ready", func() bool {
		out, err := exec.Command("kubectl", "get", "node", nodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`).Output()
		return err == nil && string(out) == "True"
	})
	return n
}

// write makes the files of the cluster.
func (n *Node) write(t testing.TB) {
	t.Helper()
	if err := os.MkdirAll(control, 0o700); err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t)
	accounts := newKey(t)
	public, err := x509.MarshalPKIXPublicKey(accounts.Public())
	if err != nil {
		t.Fatal(err)
	}
	cert, key := a.issue(t, "kube-apiserver", "system:masters", apiAddress, "127.0.0.1")
	kubelet := find(t, "kubelet")
	files := map[string]string{
		control + "/ca.crt": string(a.pem), control + "/api.crt": string(cert), control + "/api.key": string(key),
		control + "/accounts.key": string(keyPEM(t, accounts)),
		control + "/accounts.pub": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		containerd.ConfigFile: containerd.Config(nriSocket, true) + fmt.Sprintf("[plugins.'io.containerd.grpc.v1.cri'.cni]\nbin_dir = %q\nconf_dir = '/etc/cni/net.d'\n",
			filepath.Dir(find(t, "ptp"))),
		"/etc/cni/net.d/10-lab.conflist": network,
		kubeletConfig:                    n.kubelet(),
		processorScript:                  describeProcessor,
		units + "/kubelet.service":       strings.Replace(kubeletUnit, "PATH", kubelet+" --node-ip="+apiAddress+" --kubeconfig="+control+"/kubelet.conf", 1),
		results + "/.weir-lab":           "",
		Scratch + "/.weir-lab":           "",
	}
	for _, u := range controlUnits {
		files[units+"/"+u.name+".service"] = strings.NewReplacer("KIND", u.kind, "PATH", find(t, u.name), "ARGS", u.args).Replace(controlUnit)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(files[path]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	a.kubeconfig(t, Admin, "admin", "system:masters")
	a.kubeconfig(t, control+"/kubelet.conf", "system:node:"+nodeName, "system:nodes")
	a.kubeconfig(t, control+"/controllers.conf", "system:kube-controller-manager", "")
	a.kubeconfig(t, control+"/scheduler.conf", "system:kube-scheduler", "")
}

// stopCluster ends all that NewCluster has started, and the pods. Logs are printed where the test has failed.
func (n *Node) stopCluster(t testing.TB) {
	var names []string
	for _, u := range controlUnits {
		names = append(names, u.name)
	}
	if t.Failed() {
		n.logs(t, append(names, "kubelet", "containerd")...)
	}
	slices.Reverse(names) // the API server's end waits for its database
	for _, name := range append([]string{"kubelet"}, names...) {
		run(t, "systemctl", "stop", name)
	}
	if out, err := exec.Command("sh", "-c", "for t in $(ctr -n k8s.io tasks ls -q); do ctr -n k8s.io tasks kill -s KILL $t; done").CombinedOutput(); err != nil {
		t.Logf("end the pods: %v\n%s", err, out)
	}
	run(t, "systemctl", "stop", "containerd", "kubepods.slice")
}

// Kubectl gives kubectl's answer, and ends the test when it fails.
func Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return run(t, "kubectl", args...)
}

// MemoryOf is the resident memory of a unit's main process, in bytes.
func MemoryOf(t testing.TB, unit string) int {
	t.Helper()
	return Memory(t, MainPID(t, unit))
}

// Memory is what the kernel says of a process (VmRSS), in bytes; 0: it has ended.
func Memory(t testing.TB, pid string) (bytes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &bytes); n == 1 {
			return bytes << 10
		}
	}
	return 0
}

// Processes are those of a program, by their numbers, with their command lines.
func Processes(t testing.TB, program string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(run(t, "ps", "-o", "pid=,args=", "-C", program)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[pid] = args
	}
	return found
}
