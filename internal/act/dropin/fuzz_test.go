package dropin

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

// FuzzParse: what is read of a drop-in and written again says the same, a line for a line.
func FuzzParse(f *testing.F) {
	f.Add("# limits: [{\"on\":\"/data\",\"limit\":{\"rbps\":null,\"wbps\":5000000}}]\n[Service]\n")
	f.Add("# limits: [{\"on\":\"a\\nExecStart=/bin/x\",\"limit\":{\"wbps\":\"max\"}}]")
	f.Add("# limits: null")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Text("x.service", "/usr/bin/weir", entries, func(e limit.Asked) []string { return []string{"--on", e.On} })
		if err != nil {
			return // a place that a unit's file cannot hold
		}
		for line := range strings.Lines(again) {
			if !strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "[Service]") && !strings.HasPrefix(line, "ExecStartPost=-+/usr/bin/weir set unit:x.service ") &&
				line != "BlockIOAccounting=yes\n" && line != "IOAccounting=yes\n" {
				t.Errorf("a line of its own: %q", line)
			}
		}
		got, err := Parse(again)
		if err != nil || len(got) != len(entries) || len(got) > 0 && !reflect.DeepEqual(got, entries) {
			t.Errorf("%+v is read as %+v, %v", entries, got, err)
		}
	})
}
