package weir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeKubectl stands in for kubectl: it notes its arguments, and answers for pod web on node n1, and for
// pod waiting on none. Node n2 has no weird.
const fakeKubectl = `#!/bin/sh
for word; do printf '[%s]' "$word" >>"$LOG"; done
echo >>"$LOG"
case "$*" in
'config view '*) printf '%s' "$DEFAULT_NAMESPACE" ;;
'get pod '*' web') printf n1 ;;
'get pod '*' far') printf n2 ;;
'get pod '*' waiting') ;;
'get pod '*) echo 'Error from server (NotFound)' >&2; exit 1 ;;
'get pods '*nodeName=n1*) printf 'weir-abc weir-old' ;;
esac
`

// kubectl weir runs weir in weird's pod on the node of the pod, with each argument as it was.
func TestKubectlWeir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(fakeKubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	const into = "[exec][--namespace][kube-system][--stdin=false][--container][weird][weir-abc][--][weird][enter]"
	for _, c := range []struct {
		args  string // separated by |
		space string // the context's
		exit  int
		says  string
		last  string // call of kubectl
	}{
		{"why|web", "", 0, "", into + "[weir][why][pod:default/web]"},
		{"why|web", "prod", 0, "", into + "[weir][why][pod:prod/web]"},
		{"prove|-n|ci|web|--for|10s", "prod", 0, "", into + "[weir][prove][pod:ci/web][--for][10s]"},
		{"trace|--namespace|ci|web|a b|$(x)|*", "", 0, "", into + "[weir][trace][pod:ci/web][a b][$(x)][*]"},
		{"show|web|--json", "", 0, "", into + "[weir][show][pod:default/web][--json]"},
		{"status|web", "", 0, "", into + "[weird][status][pod:default/web]"},
		{"top|web|--once", "", 0, "", into + "[weir][top][--once]"},
		{"why|far", "", 1, "no pod of weird runs on node n2", ""},
		{"why|waiting", "", 1, "pod default/waiting is on no node yet", ""},
		{"why|none", "", 1, "NotFound", ""},
		{"", "", 2, "usage: kubectl weir", ""},
		{"set|web", "", 2, "usage: kubectl weir", ""},
		{"why", "", 2, "usage: kubectl weir", ""},
		{"why|--json|web", "", 2, "usage: kubectl weir", ""},
		{"why|-n", "", 2, "usage: kubectl weir", ""},
		{"--help", "", 0, "usage: kubectl weir", ""},
	} {
		log := filepath.Join(t.TempDir(), "log")
		var args []string
		if c.args != "" {
			args = strings.Split(c.args, "|")
		}
		cmd := exec.Command("contrib/kubernetes/kubectl-weir", args...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LOG="+log, "DEFAULT_NAMESPACE="+c.space, "WEIR_NAMESPACE=", "WEIR_SELECTOR=")
		out, err := cmd.CombinedOutput()
		exit := 0
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			exit = ended.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		calls, _ := os.ReadFile(log) // there may have been none
		lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
		if exit != c.exit || !strings.Contains(string(out), c.says) || c.last != "" && lines[len(lines)-1] != c.last {
			t.Errorf("%s: exit code %d, %q, and last\n%s\nwant %d, %q and\n%s", c.args, exit, out, lines[len(lines)-1], c.exit, c.says, c.last)
		}
		if c.last == "" && strings.Contains(string(calls), "[exec]") {
			t.Errorf("%s: it runs something:\n%s", c.args, calls)
		}
	}
}
