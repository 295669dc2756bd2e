package tracer

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/trace"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{"name\x00rest": "name", "full": "full", "\x00": ""} {
		if got := text([]byte(in)); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
}

// The kernel's own count bounds what weir takes for unseen: seccomp ends calls that never began.
func TestUnseenWithinMissed(t *testing.T) {
	u := trace.Unseen{Count: 5, Time: time.Second}
	for missed, want := range map[uint64]trace.Unseen{0: {}, 3: {Count: 3, Time: time.Second}, 9: u} {
		if got := within(u, missed); got != want {
			t.Errorf("%d programs left out: %+v, want %+v", missed, got, want)
		}
	}
}
