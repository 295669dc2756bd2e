package cmdline

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

func TestLine(t *testing.T) {
	words := []string{"/data", "", "a b", "it's", "$HOME", "~", "a;b", "-x", "docker:web", "é"}
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+Line(words)).Output()
	want := ""
	for _, w := range words {
		want += w + "\n"
	}
	if err != nil || string(out) != want {
		t.Errorf("a shell reads %s as %q (%v)", Line(words), out, err)
	}
	if got := Line([]string{"weir", "set", "/data"}); got != "weir set /data" {
		t.Errorf("what needs no quotes is spelled %s", got)
	}
}

func TestWords(t *testing.T) {
	asked := limit.Asked{On: "/a b", Hold: limit.HoldPacer, Limit: limit.Limit{RBPS: limit.PerSecond(1500e6), WBPS: limit.PerSecond(10 << 20), RIOPS: limit.PerSecond(500), WIOPS: limit.Unlimited}}
	want := []string{"--read", "1.5GB/s", "--write", "10MiB/s", "--read-iops", "500", "--write-iops", "max", "--on", "/a b", "--hold", "pacer"}
	if got := Words(asked); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Words(limit.Asked{}); got != nil {
		t.Errorf("nothing is spelled %q", got)
	}
	if got := Flags(limit.Asked{On: "/a b"}); got != "--on '/a b'" {
		t.Errorf("a place is spelled %s", got)
	}
}
