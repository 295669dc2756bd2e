package planned

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// A changing context changes something when it is asked for the nth time whether it has ended.
type changing struct {
	context.Context
	n      int
	change func()
}

func (c *changing) Err() error {
	if c.n--; c.n == 0 {
		c.change()
	}
	return c.Context.Err()
}

// The mount of a plan's place changes at any moment while the place is looked up: the place has its own rates then, and the
// next look finds the rest.
func TestAMountThatChanges(t *testing.T) {
	lab.Unit(t)
	between := false
	for n := 1; ; n++ {
		w := newWorld(t, "v2")
		file := filepath.Join(w.host.Root, "proc/1/mountinfo")
		ctx := &changing{t.Context(), n, func() {
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, []byte(strings.Replace(string(text), "254:16 / /data rw,relatime - xfs /dev/vdb", "254:1 /x /data rw,relatime - ext4 /dev/vda1", 1)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}}
		all, err := w.manager(t, "plans: {a: {read: 3MB/s, on: [{path: /data, write: 50MB/s}]}}").AskedHere(ctx, "a")
		if err != nil || len(all) == 0 || all[0].On != "/data" || all[0].Limit.WBPS != limit.PerSecond(50e6) {
			t.Errorf("it changes at question %d: %+v, %v", n, all, err)
		} else if _, bound := all[0].Limit.RBPS.Number(); !bound {
			between = true
		}
		if ctx.n > 0 { // it has not changed
			break
		}
	}
	if !between {
		t.Error("it has changed at no moment that counts")
	}
}
