package planned

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// What is newer does not depend on the clock: it can be set while a disk is waited for, and a boot begins anew.
func TestABirthWhileTheClockIsSet(t *testing.T) {
	lab.Unit(t)
	const boot = "proc/sys/kernel/random/boot_id"
	for name, c := range map[string]struct {
		before bool          // the record is from before the birth
		file   time.Duration // what its file's time says, from now
		boot   string        // that the record is from; empty: the present one
		stays  bool
	}{
		"an older one": {before: true},
		"an older one, and the clock was set back": {before: true, file: time.Hour},
		"a newer one": {stays: true},
		"a newer one, and the clock was set back":   {file: -time.Hour, stays: true},
		"one of another boot, which took longer":    {before: true, boot: "other"},
		"one of another boot, the clock set back":   {before: true, boot: "other", file: time.Hour},
		"a newer one, and the clock was set onward": {file: time.Hour, stays: true},
	} {
		w := newWorld(t, "v2")
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(w.host.Root, boot)), 0o700), os.WriteFile(filepath.Join(w.host.Root, boot), []byte("this\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		m := w.manager(t, firstPlans)
		other := record{Target: keyOf(web), Name: web.String(), Plan: "another"}
		put := func() {
			its := other
			if its.At = now(w.host.Root); c.boot != "" {
				its.At = moment{c.boot, its.At.Since + time.Hour}
			}
			at := time.Now().Add(c.file)
			if err := errors.Join(its.saveOf(w.host.Root), os.Chtimes(filepath.Join(w.host.Root, records, fileOf(its.Target)), at, at)); err != nil {
				t.Fatal(err)
			}
		}
		if c.before {
			put()
		}
		b, err := m.BeginFirst(web, isSmall, w.groupOf(t, webID), rulesOf(t, m))
		if err != nil || b == nil {
			t.Fatal(err)
		}
		if !c.before {
			put()
		}
		if err := b.Record(); err != nil {
			t.Error(err)
		}
		if after, err := recordOf(w.host.Root, keyOf(web)); err != nil || after == nil || (after.Plan == "another") != c.stays {
			t.Errorf("%s: %+v, %v", name, after, err)
		}
	}
}

// Of two births of a target, the later one is on record, in whatever order they are put there.
func TestTwoBirthsOfATarget(t *testing.T) {
	lab.Unit(t)
	for _, late := range []bool{false, true} {
		w := newWorld(t, "v2")
		m := w.manager(t, firstPlans)
		first := &record{Target: keyOf(web), Name: web.String(), Plan: "first", At: now(w.host.Root)}
		second := &record{Target: keyOf(web), Name: web.String(), Plan: "second", At: moment{first.At.Boot, first.At.Since + 1}}
		order := []*record{first, second}
		if late {
			slices.Reverse(order)
		}
		for _, next := range order {
			if err := m.recordBirth(next, 0); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := recordOf(w.host.Root, keyOf(web)); err != nil || is == nil || is.Plan != "second" {
			t.Errorf("the first one late: %t: %+v, %v", late, is, err)
		}
	}
}
