package kube

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	chart = "../../contrib/kubernetes/chart"
	base  = "../../contrib/kubernetes/base"
)

var update = flag.Bool("update", false, "write contrib/kubernetes/base anew")

// program is helm, built once.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "helm")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "helm")
	if out, err := exec.Command("go", "build", "-o", program, "helm.sh/helm/v4/cmd/helm").CombinedOutput(); err != nil {
		panic(err.Error() + "\n" + string(out))
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// helm runs it, with values.
func helm(t *testing.T, values map[string]any, args ...string) (string, error) {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(args, "--values", file)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = errors.New(said.String() + string(out))
	}
	return string(out), err
}

func render(t *testing.T, values map[string]any) (string, error) {
	t.Helper()
	return helm(t, values, "template", "weir", chart, "--namespace", "kube-system", "--kube-version", "1.30.0")
}

// objects reads manifests as the API server does, where it is strict: no unknown and no double fields.
func objects(t *testing.T, text string) (all []runtime.Object) {
	t.Helper()
	decode := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		one, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if stripped := strings.TrimSpace(string(one)); stripped == "" || onlyComments(stripped) {
			continue
		}
		object, _, err := decode.Decode(one, nil, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, one)
			continue
		}
		all = append(all, object)
	}
}

func onlyComments(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

func find[T runtime.Object](t *testing.T, all []runtime.Object) (found T) {
	t.Helper()
	i := slices.IndexFunc(all, func(o runtime.Object) bool { _, is := o.(T); return is })
	if i < 0 {
		t.Fatalf("there is no %T", found)
	}
	return all[i].(T)
}

// leaves are the paths of all values: "metrics.port".
func leaves(prefix string, values map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range values {
		if of, is := value.(map[string]any); is && len(of) > 0 {
			maps.Copy(all, leaves(prefix+name+".", of))
		} else {
			all[prefix+name] = value
		}
	}
	return all
}

// at makes values with one of them.
func at(path string, value any) map[string]any {
	name, rest, more := strings.Cut(path, ".")
	if more {
		value = at(rest, value)
	}
	return map[string]any{name: value}
}

// changes are another value for each of the chart's, and what of it must be in the manifests. Some need others.
var changes = map[string]struct {
	value any
	want  string
	with  map[string]any
}{
	"image.repository":           {"reg.example/weir", "reg.example/weir:0.1.0", nil},
	"image.tag":                  {"v9", "weir:v9", nil},
	"image.pullPolicy":           {"Always", "imagePullPolicy: Always", nil},
	"imagePullSecrets":           {[]any{map[string]any{"name": "key"}}, "imagePullSecrets:\n        - name: key", nil},
	"nameOverride":               {"io", "app.kubernetes.io/name: io", nil},
	"fullnameOverride":           {"limits", "name: limits-plans", nil},
	"plans":                      {map[string]any{"plans": map[string]any{"small": map[string]any{"write": "10MiB/s"}}}, "      small:\n        write: 10MiB/s", nil},
	"nri.socket":                 {"/run/other/nri.sock", `path: "/run/other"`, nil},
	"runtime.socket":             {"/run/k3s/containerd/containerd.sock", `"unix:///run/k3s/containerd/containerd.sock"`, nil},
	"systemd.enabled":            {false, "", nil},
	"trace.enabled":              {false, "", nil},
	"kubeAPI.enabled":            {true, ", --kube-api]", nil},
	"kubeAPI.volumeLimits":       {true, ", --kube-api, --volume-limits]", map[string]any{"enabled": true}},
	"probes.port":                {10001, "containerPort: 10001", nil},
	"metrics.enabled":            {true, "args: [enter, weird, metrics", nil},
	"metrics.port":               {10002, "containerPort: 10002", map[string]any{"enabled": true}},
	"metrics.history.enabled":    {true, "--history, /var/lib/weir/history]", map[string]any{"enabled": true}},
	"resources.requests.cpu":     {"11m", "cpu: 11m", nil},
	"resources.requests.memory":  {"49Mi", "memory: 49Mi", nil},
	"resources.limits.memory":    {"193Mi", "memory: 193Mi", nil},
	"priorityClassName":          {"mine", "priorityClassName: mine", nil},
	"serviceAccount.annotations": {map[string]any{"a": "b"}, "annotations:\n    a: b", nil},
	"podAnnotations":             {map[string]any{"c": "d"}, "        c: d", nil},
	"podLabels":                  {map[string]any{"e": "f"}, "        e: f", nil},
	"nodeSelector":               {map[string]any{"g": "h"}, "        g: h", nil},
	"affinity":                   {map[string]any{"nodeAffinity": map[string]any{}}, "nodeAffinity: {}", nil},
	"tolerations":                {[]any{map[string]any{"key": "k", "operator": "Exists"}}, "key: k", nil},
	"updateStrategy.type":        {"OnDelete", "type: OnDelete", nil},
	"updateStrategy.rollingUpdate.maxUnavailable": {25, "maxUnavailable: 25", nil},
	"metrics.resources.requests.cpu":              {"6m", "cpu: 6m", map[string]any{"enabled": true}},
	"metrics.resources.requests.memory":           {"33Mi", "memory: 33Mi", map[string]any{"enabled": true}},
	"metrics.resources.limits.memory":             {"129Mi", "memory: 129Mi", map[string]any{"enabled": true}},
}

func merge(to, from map[string]any) map[string]any {
	for name, value := range from {
		if of, is := value.(map[string]any); is {
			if was, is := to[name].(map[string]any); is {
				value = merge(was, of)
			}
		}
		to[name] = value
	}
	return to
}

// Each value changes what it is for, and what comes out is what Kubernetes takes.
func TestValues(t *testing.T) {
	defaults, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(defaults, &values); err != nil {
		t.Fatal(err)
	}
	usual, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	of := leaves("", values)
	for path := range changes {
		if _, there := of[path]; !there {
			t.Errorf("there is no value %s", path)
		}
	}
	for path := range of {
		c, there := changes[path]
		if !there {
			t.Errorf("nothing tries the value %s", path)
			continue
		}
		t.Run(path, func(t *testing.T) {
			its := at(path, c.value)
			first, _, _ := strings.Cut(path, ".")
			without := usual
			if c.with != nil {
				without, err = render(t, map[string]any{first: c.with})
				if err != nil {
					t.Fatal(err)
				}
				its = merge(map[string]any{first: maps.Clone(c.with)}, its)
			}
			text, err := render(t, its)
			if err != nil {
				t.Fatal(err)
			}
			if text == without || !strings.Contains(text, c.want) || c.want != "" && strings.Contains(without, c.want) {
				t.Errorf("it changes nothing, or not %q:\n%s", c.want, text)
			}
			check(t, objects(t, text))
			if out, err := helm(t, its, "lint", "--strict", chart); err != nil {
				t.Errorf("%v%s", err, out)
			}
		})
	}
}

// A value of another kind, and one that is unknown, are refused by the schema.
func TestWrongValues(t *testing.T) {
	for path, value := range map[string]any{
		"imagee": "x", "image.repo": "x", "image.repository": "", "image.tag": "a b", "image.pullPolicy": "Sometimes", "imagePullSecrets": []any{"x"},
		"plans.plan": map[string]any{}, "plans.assign": "x", "plans.plans": map[string]any{"small": map[string]any{"write": "10 apples"}}, "nri.socket": "nri.sock", "runtime.socket": "/run/", "systemd.enabled": "yes", "trace.enabled": 1, "kubeAPI.enabled": "x", "kubeAPI.volumeLimits": true, "kubeAPI.volumeLimit": true,
		"probes.port": 80, "metrics.enabled": "no", "metrics.port": "9847", "podLabels": map[string]any{"a": 1}, "tolerations": map[string]any{}, "priorityClassName": 5,
	} {
		if _, err := render(t, at(path, value)); err == nil || !strings.Contains(err.Error(), strings.Split(path, ".")[0]) {
			t.Errorf("%s: %v: %v", path, value, err)
		}
	}
}

// check holds what each rendering must have.
func check(t *testing.T, all []runtime.Object) {
	t.Helper()
	d := find[*appsv1.DaemonSet](t, all)
	spec := d.Spec.Template.Spec
	if find[*corev1.ServiceAccount](t, all).Name != spec.ServiceAccountName {
		t.Errorf("the account is %s", spec.ServiceAccountName)
	}
	plans := find[*corev1.ConfigMap](t, all)
	for name, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[name] != value {
			t.Errorf("the pods have no label %s=%s", name, value)
		}
	}
	used := map[string]bool{}
	for _, c := range spec.Containers {
		if s := c.SecurityContext; s == nil || s.Privileged != nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: %+v", c.Name, s)
		}
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
		}
		if p := c.ReadinessProbe; c.Name == "weird" && (p == nil || p.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz") {
			t.Errorf("%+v", p)
		}
	}
	for _, v := range spec.Volumes {
		if !used[v.Name] {
			t.Errorf("nothing mounts %s", v.Name)
		}
		delete(used, v.Name)
		if v.ConfigMap != nil && v.ConfigMap.Name != plans.Name {
			t.Errorf("the plans are %s", v.ConfigMap.Name)
		}
	}
	if len(used) > 0 || spec.HostNetwork || spec.HostIPC {
		t.Errorf("there are no volumes %v; %+v", used, spec)
	}
}

// With the API server weird has a token and the few rights that it uses, and without neither.
func TestRights(t *testing.T) {
	without, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(without, "ClusterRole") || *find[*appsv1.DaemonSet](t, objects(t, without)).Spec.Template.Spec.AutomountServiceAccountToken {
		t.Errorf("there are rights:\n%s", without)
	}
	with, err := render(t, at("kubeAPI.enabled", true))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, with)
	d, role, binding := find[*appsv1.DaemonSet](t, all), find[*rbacv1.ClusterRole](t, all), find[*rbacv1.ClusterRoleBinding](t, all)
	if !*d.Spec.Template.Spec.AutomountServiceAccountToken || binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != d.Spec.Template.Spec.ServiceAccountName || binding.Subjects[0].Namespace != "kube-system" {
		t.Errorf("%+v", binding)
	}
	const few = "pods:list,watch namespaces:list,watch pods/status:patch events:create"
	if got := rightsOf(role); got != few {
		t.Errorf("the rights are %s", got)
	}
	with, err = render(t, map[string]any{"kubeAPI": map[string]any{"enabled": true, "volumeLimits": true}})
	if err != nil {
		t.Fatal(err)
	}
	if got := rightsOf(find[*rbacv1.ClusterRole](t, objects(t, with))); got != few+" persistentvolumeclaims:list,watch persistentvolumes:list,watch"+
		" volumeattributesclasses.storage.k8s.io:list,watch volumeattachments.storage.k8s.io:list,watch" {
		t.Errorf("with volumes the rights are %s", got)
	}
}

// rightsOf spells the rights of a role.
func rightsOf(role *rbacv1.ClusterRole) string {
	var rights []string
	for _, r := range role.Rules {
		what := strings.Join(r.Resources, ",")
		if group := strings.Join(r.APIGroups, ","); group != "" {
			what += "." + group
		}
		rights = append(rights, what+":"+strings.Join(r.Verbs, ","))
	}
	return strings.Join(rights, " ")
}

// The base is the chart with its own values, and kustomize takes it.
func TestBase(t *testing.T) {
	text, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	text = "# Made by make kube-base of contrib/kubernetes/chart.\n" + withoutHelm(text)
	file := filepath.Join(base, "weir.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(file)
	if err != nil || string(is) != text {
		t.Errorf("%s is not what the chart makes (%v); run make kube-base", file, err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), base)
	if err != nil {
		t.Fatal(err)
	}
	out, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	check(t, objects(t, string(out)))
	if got, want := len(objects(t, string(out))), len(objects(t, text)); got != want || want == 0 {
		t.Errorf("kustomize makes %d objects of %d", got, want)
	}
}

// withoutHelm leaves out what says that Helm manages an object, and where it came from.
func withoutHelm(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "app.kubernetes.io/managed-by: Helm") && !strings.HasPrefix(line, "# Source: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
