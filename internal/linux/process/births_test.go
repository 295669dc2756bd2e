package process

import (
	"os/exec"
	"testing"
)

// A process that begins is seen, though another may be as well.
func TestBirths(t *testing.T) {
	b, err := OpenBirths()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if !b.Some() {
		t.Error("the first look has seen nothing")
	}
	none := 0
	for range 1000 {
		if !b.Some() {
			none++
		}
	}
	if none == 0 {
		t.Error("of 1,000 looks each has seen a process begin")
	}
	for range 20 {
		if err := exec.Command("/bin/true").Run(); err != nil {
			t.Fatal(err)
		}
		if !b.Some() {
			t.Error("a process has begun, and nothing was seen")
		}
	}
}
