package cli

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

func TestQuote(t *testing.T) {
	for _, word := range []string{"/data", "", "a b", "it's", "$HOME", "~", "a;b", "-x", "docker:web", "é"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is quoted as %s, which a shell reads as %q (%v)", word, Quote(word), out, err)
		}
	}
	if got := Quote("/data"); got != "/data" {
		t.Errorf("/data is quoted as %s", got)
	}
}

// What flags are spelt as is read back as the same.
func TestFlags(t *testing.T) {
	all := limit.Limit{RBPS: limit.PerSecond(1234567), WBPS: limit.PerSecond(10 << 20), RIOPS: limit.PerSecond(500), WIOPS: limit.Unlimited}
	for _, want := range []limit.Asked{{On: "", Limit: wbps(10e6)}, {On: "/data", Limit: rbps(1500e6)}, {On: "/dev/sda", Limit: all}} {
		out, err := exec.Command("sh", "-c", "printf '%s\\n' "+Flags(want)).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := resolve(t, strings.Fields(string(out))...)
		if err != nil || !reflect.DeepEqual(got, []limit.Asked{want}) {
			t.Errorf("%s: %v, %v; want %v", Flags(want), got, err, want)
		}
	}
}
