package lab

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	if got := waits(os.Getpid()); !strings.Contains(got, "thread ") || !strings.Contains(got, "in groups ") {
		t.Errorf("of this process: %q", got)
	}
	if got := waits(1 << 30); got != "it is gone" {
		t.Errorf("of no process: %q", got)
	}
	if lag := tickLag(); lag < 0 || lag > time.Minute {
		t.Errorf("the tick is %s behind", lag)
	}
}
