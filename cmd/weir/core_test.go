package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/explain"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/why"
	"github.com/weir-io/weir/lab"
)

// TestWhyIsTheCores has another front end ask what weir why asks: the core alone gives the same
// document.
func TestWhyIsTheCores(t *testing.T) {
	lab.Unit(t)
	for _, machine := range []string{"v1", "v2"} {
		root := filepath.Join(t.TempDir(), machine)
		if err := hosttest.Make(root, machine); err != nil {
			t.Fatal(err)
		}
		for _, subject := range []string{"", "/data", "vdb", "pid:4711", "cgroup:/batch/night", "cgroup:/"} {
			want := asked(t, root, subject)
			args := []string{"why", "--json", "--root", root}
			if subject != "" {
				args = append(args, subject)
			}
			var data, messages bytes.Buffer
			a := &app{out: cli.Out{Data: &data, Messages: &messages}}
			command := rootFor(a, args)
			command.SetArgs(args)
			err := command.ExecuteContext(context.Background())
			a.close()
			var status *cli.StatusError
			if err != nil && !errors.As(err, &status) || a.out.Flush() != nil {
				t.Fatalf("%q on %s: %v", subject, machine, err)
			}
			if got := strings.TrimSpace(data.String()); got != want {
				t.Errorf("%q on %s:\n%s\nand by the core\n%s", subject, machine, got, want)
			}
		}
	}
}

func asked(t *testing.T, root, subject string) string {
	t.Helper()
	h, err := host.Open(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	q, _, err := explain.QuestionOf(context.Background(), h, explain.Request{Subject: subject, Hold: limit.HoldAuto})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := h.WhySources()
	if err != nil {
		t.Fatal(err)
	}
	facts, err := why.Gather(context.Background(), sources, q)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(api.WhyOf(why.Judge(facts), nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
