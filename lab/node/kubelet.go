package node

import (
	"fmt"

	"github.com/weir-io/weir/lab/containerd"
)

const (
	// manifests is the directory of static pods.
	manifests     = "/etc/kubernetes/manifests"
	kubeletConfig = "/etc/kubernetes/kubelet.yaml"
	// nodeName is added to the names of static pods.
	nodeName = "lab"

	processorScript = "/usr/local/sbin/weir-lab-processor"
)

// kubeletUnit is systemd's unit. kubelet tells systemd when it is ready.
const kubeletUnit = `[Unit]
Description=kubelet without an API server
After=containerd.service
Wants=containerd.service
StartLimitIntervalSec=0
[Service]
Type=notify
ExecStartPre=/bin/sh ` + processorScript + `
ExecStart=PATH --config=` + kubeletConfig + ` --hostname-override=` + nodeName + ` --v=2
Restart=always
RestartSec=2
TimeoutStartSec=3min
[Install]
WantedBy=multi-user.target
`

// describeProcessor gives kubelet the processor's clock, which it does not start without (cadvisor,
// machine.GetClockSpeed), and which user-mode Linux does not tell.
const describeProcessor = `set -e
if ! grep -q '^cpu MHz' /proc/cpuinfo; then
	{ sed '/^$/d' /proc/cpuinfo; echo 'cpu MHz		: 1000.000'; } >/run/weir-lab-cpuinfo
	mount --bind /run/weir-lab-cpuinfo /proc/cpuinfo
fi
`

// podsURL is where kubelet lists its pods.
func (n *Node) podsURL() string {
	if n.api {
		return "http://" + apiAddress + ":10255/pods"
	}
	return "http://127.0.0.1:10255/pods"
}

// kubelet is its configuration. It neither evicts pods nor removes images where the guest's disk or memory
// is short, and does not ask what the guest's disk is called.
func (n *Node) kubelet() string {
	source := "address: 127.0.0.1\nregisterNode: false\nstaticPodPath: " + manifests
	if n.api {
		source = "address: " + apiAddress + "\nregisterNode: true"
	}
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
%s
containerRuntimeEndpoint: unix://%s
cgroupDriver: %s
readOnlyPort: 10255
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 0%%}
imageGCHighThresholdPercent: 100
`, source, containerd.Socket, n.Driver)
}
