package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/lab"
)

// TestLimitsAreTheCores has another front end ask what weir show, and weir set and clear in a dry
// run, ask: the core alone gives the same documents.
func TestLimitsAreTheCores(t *testing.T) {
	lab.Unit(t)
	write := limit.Limit{WBPS: limit.PerSecond(5e6)}
	steps := func(verb string, c limiting.Change, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		p, err := c.Steps(t.Context())
		return api.DryRunOf(verb, p.Steps), err
	}
	for _, c := range []struct {
		args []string
		core func(limiting.Manager) (any, error)
	}{
		{[]string{"show", "--for", "0"}, func(m limiting.Manager) (any, error) {
			s, err := m.ShowAll(t.Context(), 0)
			return api.ShowOf(s), err
		}},
		{[]string{"show", "--for", "0", "cgroup:/batch/night"}, func(m limiting.Manager) (any, error) {
			s, err := m.Show(t.Context(), "cgroup:/batch/night", 0)
			return api.ShowOf(s), err
		}},
		{[]string{"set", "--dry-run", "cgroup:/batch", "--write", "5MB/s", "--on", "/data"}, func(m limiting.Manager) (any, error) {
			c, err := m.PrepareSet(t.Context(), limiting.Request{Target: "cgroup:/batch", Asked: []limit.Asked{{On: "/data", Limit: write}}})
			return steps("set", c, err)
		}},
		{[]string{"set", "--dry-run", "pid:4711", "--write", "5MB/s", "--whole-cgroup", "--hold", "kernel"}, func(m limiting.Manager) (any, error) {
			c, err := m.PrepareSet(t.Context(), limiting.Request{Target: "pid:4711", Asked: []limit.Asked{{Limit: write}}, Whole: true, Hold: limit.HoldKernel})
			return steps("set", c, err)
		}},
		{[]string{"clear", "--dry-run", "cgroup:/batch", "--on", "/data"}, func(m limiting.Manager) (any, error) {
			c, err := m.PrepareClear(t.Context(), "cgroup:/batch", []string{"/data"}, false)
			return steps("clear", c, err)
		}},
		{[]string{"restore", "--dry-run"}, func(m limiting.Manager) (any, error) {
			_, err := m.Restore(t.Context(), limiting.Restore{Dry: true})
			return api.DryRunOf("restore", nil), err
		}},
	} {
		for _, machine := range []string{"v1", "v2"} {
			root := filepath.Join(t.TempDir(), machine)
			if err := hosttest.Make(root, machine); err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(host.Options{Root: root})
			if err != nil {
				t.Fatal(err)
			}
			doc, err := c.core(limiting.Manager{Host: h})
			if err != nil {
				t.Fatalf("%q on %s: %v", c.args, machine, err)
			}
			want, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if got := printed(t, append(c.args, "--json", "--root", root)); !reflect.DeepEqual(got, decoded(t, want)) {
				t.Errorf("%q on %s:\n%s\nand by the core\n%s", c.args, machine, got, want)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// printed is the document that a command line prints, without what it says beside it.
func printed(t *testing.T, args []string) map[string]any {
	t.Helper()
	var data, messages bytes.Buffer
	a := &app{out: cli.Out{Data: &data, Messages: &messages}}
	command := rootFor(a, args)
	command.SetArgs(args)
	err := command.ExecuteContext(context.Background())
	a.close()
	if err != nil || a.out.Flush() != nil {
		t.Fatalf("%q: %v\n%s", args, err, messages.String())
	}
	doc := decoded(t, data.Bytes())
	delete(doc, "messages")
	return doc
}

func decoded(t *testing.T, text []byte) (doc map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}
