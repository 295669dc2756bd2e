package dropin

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
)

func TestDropInHoldsItsEntries(t *testing.T) {
	entries := []limit.Asked{{On: "/data", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}, {On: `a "b" 100% $HOME\x`, Limit: limit.Limit{RBPS: limit.Unlimited, RIOPS: limit.PerSecond(7)}, Hold: "auto"}}
	text, err := Text("web@1.service", "/usr/local/my bin/weir", entries, func(e limit.Asked) []string { return []string{"--on", e.On} })
	if err != nil {
		t.Fatal(err)
	}
	want := `# Made by weir set --persist. weir clear unit:web@1.service removes it.
# limits: [{"on":"/data","limit":{"rbps":null,"wbps":5000000,"riops":null,"wiops":null}},{"on":"a \"b\" 100% $HOME\\x","limit":{"rbps":"max","wbps":null,"riops":7,"wiops":null},"hold":"auto"}]
[Service]
BlockIOAccounting=yes
IOAccounting=yes
ExecStartPost=-+"/usr/local/my bin/weir" set unit:web@1.service --quiet --on /data
ExecStartPost=-+"/usr/local/my bin/weir" set unit:web@1.service --quiet --on "a \"b\" 100%% $$HOME\\x"
`
	if text != want {
		t.Errorf("%s\nwant:\n%s", text, want)
	}
	got, err := Parse(text)
	if err != nil || !reflect.DeepEqual(got, entries) {
		t.Errorf("Parse = %v, %v", got, err)
	}
	for _, other := range []string{"", "[Service]\n", saved + "[\n"} {
		if got, err := Parse(other); err == nil {
			t.Errorf("Parse(%q) = %v", other, got)
		}
	}
}

func TestMerge(t *testing.T) {
	write := func(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }
	has := []limit.Asked{{On: "/data", Limit: write(5)}, {Limit: write(9)}}
	got := Merge(has, limit.Asked{On: "/data", Limit: limit.Limit{RBPS: limit.PerSecond(3)}, Hold: "pacer"})
	want := []limit.Asked{{Limit: write(9)}, {On: "/data", Limit: limit.Limit{RBPS: limit.PerSecond(3), WBPS: limit.PerSecond(5)}, Hold: "pacer"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Merge = %v, want %v", got, want)
	}
	// What holds buffered writes stays with their limit, and goes with it.
	got = Merge(Merge(got, limit.Asked{On: "/data", Limit: limit.Limit{RIOPS: limit.PerSecond(7)}}), limit.Asked{On: "/logs", Limit: limit.Limit{RBPS: limit.PerSecond(7)}, Hold: "pacer"})
	if got[1].Hold != "pacer" || got[2].Hold != "" {
		t.Errorf("Merge = %v", got)
	}
	if got = Merge(got, limit.Asked{On: "/data", Limit: limit.Limit{WBPS: limit.Unlimited}}); got[2].Hold != "" {
		t.Errorf("Merge = %v", got)
	}
	if !reflect.DeepEqual(has, []limit.Asked{{On: "/data", Limit: write(5)}, {Limit: write(9)}}) {
		t.Errorf("Merge changed what it was given: %v", has)
	}
}

// What systemd would read as another line, or not at all, is refused before it is written.
func TestNoPlaceEndsItsLine(t *testing.T) {
	settings := func(e limit.Asked) []string { return []string{"IOWriteBandwidthMax=" + e.On + " 1000"} }
	for _, on := range []string{"/a\nOnSuccess=evil.service", "/a\r", "/a\\", "/\xff", "/\u2028"} {
		entries := []limit.Asked{{On: on, Limit: limit.Limit{WBPS: limit.PerSecond(1000)}}}
		var refused *plain.ValueError
		if text, err := Text("web.service", "/usr/bin/weir", entries, func(e limit.Asked) []string { return []string{"--on", e.On} }); !errors.As(err, &refused) {
			t.Errorf("Text with %q: %v\n%s", on, err, text)
		}
		if text, err := ScopeText("docker:web", entries, settings); !errors.As(err, &refused) {
			t.Errorf("ScopeText with %q: %v\n%s", on, err, text)
		}
	}
	text, err := ScopeText("docker:x\nOnSuccess=evil.service", nil, settings)
	if err != nil || strings.Count(text, "\n") != 3 {
		t.Errorf("ScopeText: %v\n%s", err, text)
	}
}
