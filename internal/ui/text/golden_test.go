package text

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// TestTexts holds what is printed of each value against testdata: data first, then messages.
func TestTexts(t *testing.T) {
	lab.Unit(t)
	const asked = "weir why --write 10MB/s --on /data"
	ofTarget := apitest.Why()
	ofTarget.Target, ofTarget.Supposed, ofTarget.Group.Owner = "pid:4711", true, targets.Owner{Kind: "unknown"}
	for name, print := range map[string]func(*cli.Out){
		"proof":      func(out *cli.Out) { Proof(out, apitest.Proof(), asked) },
		"less":       func(out *cli.Out) { Proof(out, apitest.Less(), asked) },
		"neighbour":  func(out *cli.Out) { Proof(out, apitest.Neighbour(), asked) },
		"observed":   func(out *cli.Out) { Proof(out, apitest.Observed(), asked) },
		"why":        func(out *cli.Out) { Why(out, apitest.Why()) },
		"why_target": func(out *cli.Out) { Why(out, ofTarget) },
		"why_none":   func(out *cli.Out) { Why(out, why.Report{Kernel: "6.18.0"}) },
		"dirty":      func(out *cli.Out) { Dirty(out, apitest.Dirty()) },
		"history":    func(out *cli.Out) { History(out, apitest.History()) },
		"latency":    func(out *cli.Out) { Latency(out, apitest.Latency(), false) },
	} {
		var data, messages strings.Builder
		out := cli.Out{Data: &data, Messages: &messages}
		print(&out)
		want, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := data.String() + messages.String(); got != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
