package build

import (
	"testing"

	"github.com/weir-io/weir/lab/internal/guest"
)

// What looks at a whole guest comes after all that may run beside other suites.
func TestInOrder(t *testing.T) {
	suites := []guest.Suite{{Name: "internal-hold"}, {Name: "lab-tests-full"}, {Name: "lab-tests-kills"}, {Name: "lab-tests-systemd"}}
	inOrder(suites)
	for i, want := range []guest.Suite{
		{Name: "lab-tests-systemd", Beside: true}, {Name: "lab-tests-full", Beside: true},
		{Name: "internal-hold"}, {Name: "lab-tests-kills"},
	} {
		if suites[i] != want {
			t.Errorf("place %d: %+v, want %+v", i, suites[i], want)
		}
	}
}
