package targets

import (
	"strings"
	"testing"
)

// The groups of containers and pods as runtimes spell them.
func TestCalledAfter(t *testing.T) {
	id := strings.Repeat("3f2a9c1b", 8)
	const uid = "0b6a2f7e-1c54-4f7e-9d0b-3a5c8e7f1d22"
	under := strings.ReplaceAll(uid, "-", "_")
	pod := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice"
	for _, group := range []string{
		pod + "/cri-containerd-" + id + ".scope", pod + "/crio-" + id + ".scope", pod + "/docker-" + id + ".scope",
		"/kubepods/burstable/pod" + uid + "/" + id, "/kubepods/pod" + uid + "/crio-" + id,
		"/system.slice/containerd.service/kubepods-burstable-pod" + under + ".slice:cri-containerd:" + id,
		"/kubepods-besteffort-pod" + under + ".slice:cri-containerd:" + id, "/system.slice:docker:" + id,
		"/default/" + id, "/system.slice/nerdctl-" + id + ".scope", "/machine.slice/libpod-" + id + ".scope", "/libpod_parent/libpod-" + id,
		"/k8s.io/" + id, "/actions_job/" + id, "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + under + ".slice/cri-containerd-" + id + ".scope",
	} {
		if !IsCalledAfter(group, id) || CalledAfter(group) != id {
			t.Errorf("%s is called after %s", group, CalledAfter(group))
		}
		if IsCalledAfter(group+"/init", id) || IsCalledAfter(group, id[1:]) || IsCalledAfter(group, "") {
			t.Errorf("%s is called after something else", group)
		}
	}
	for _, group := range []string{"/x-" + id[:12], "/a/" + id + ".scope.d", "/" + id[:63]} {
		if IsCalledAfter(group, id) {
			t.Errorf("%s is called after the container", group)
		}
	}
	if IsCalledAfter("/web-c1", "c1") || !IsCalledAfter("/web-c1.scope", "c1") || !IsCalledAfter("/x.slice:runc:c1", "c1") {
		t.Error("short ids")
	}
	for _, group := range []string{pod, "/kubepods/burstable/pod" + uid, "/kubepods/pod" + uid, "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + under + ".slice"} {
		if !IsPodOf(group, uid) || IsPodOf(group, uid[:8]) || IsPodOf(group, "") || IsPodOf(group+"/x", uid) {
			t.Errorf("%s is not the pod's", group)
		}
	}
}
