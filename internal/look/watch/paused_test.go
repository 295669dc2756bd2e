package watch

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// For how long the pacer has paused a group is told beside what it holds: a share of the time between
// two answers. It asks nobody who the group is again, and hides nothing where it is not told.
func TestPaused(t *testing.T) {
	w := watching(t, cgroupfs.V2, v2(map[string]string{
		"a/io.stat": "8:0 rbytes=0 wbytes=7 rios=0 wios=1\n", "a/io.max": "8:0 rbps=max wbps=1000 riops=max wiops=max\n",
		"b/io.stat": "8:0 rbytes=0 wbytes=7 rios=0 wios=1\n",
	}))
	paced := map[string]Paced{}
	paused, asked, fails := map[string]time.Duration{}, 0, error(nil)
	w.o.Paced = func() (map[string]Paced, error) { return paced, nil }
	w.o.Paused = func() (map[string]time.Duration, error) { asked++; return paused, fails }
	w.start()
	if s := w.sample(0); asked != 0 || s.group("/a").Paused != nil {
		t.Errorf("nothing is held: asked %d times, %+v", asked, s.group("/a").Paused)
	}
	paced["/a"] = Paced{WBPS: 1000}
	if a := w.sample(pacedEvery).group("/a"); a.Paused == nil || *a.Paused != (Paused{}) {
		t.Errorf("held, and not paused yet: %+v", a.Paused)
	}
	paused["/a"] = 2 * time.Second
	s := w.sample(5 * time.Second)
	if a := s.group("/a"); a.Paused == nil || *a.Paused != (Paused{Total: 2 * time.Second, Share: 40, Known: true}) {
		t.Errorf("%+v", a.Paused)
	}
	if b := s.group("/b"); b.Paused != nil {
		t.Errorf("not held: %+v", b.Paused)
	}
	paused["/a"] = time.Second // another pacer has taken over
	if a := w.sample(5 * time.Second).group("/a"); a.Paused == nil || *a.Paused != (Paused{Total: time.Second}) {
		t.Errorf("of another pacer: %+v", a.Paused)
	}
	fails = errors.New("not for you")
	s = w.sample(5 * time.Second)
	if a := s.group("/a"); a.Paused != nil || a.Paced == nil || s.Unread != 0 {
		t.Errorf("not told: %+v, %+v, %d unread", a.Paused, a.Paced, s.Unread)
	}
	fails, paced["/a"] = nil, Paced{WBPS: 1000, Lapsed: "it is gone"}
	if a := w.sample(5 * time.Second).group("/a"); a.Paused != nil {
		t.Errorf("lapsed: %+v", a.Paused)
	}
}
