package watch_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab/environ"
)

// counts are a group's counters on one device, by the names that weir's documents have for rates.
type counts map[string]uint64

// names are those of all counts.
var names = []string{"rbps", "wbps", "riops", "wiops"}

// readCounts reads the kernel's counters of a group. It shares no code with weir.
func readCounts(t testing.TB, e environ.Environ, group string, dev blkdev.Number) counts {
	t.Helper()
	c := counts{}
	if e.Cgroups.IOInV2 {
		keys := map[string]string{"rbytes": "rbps", "wbytes": "wbps", "rios": "riops", "wios": "wiops"}
		for line := range strings.Lines(readFile(t, group, "io.stat")) {
			fields := strings.Fields(line)
			if len(fields) == 0 || fields[0] != dev.String() {
				continue
			}
			for _, f := range fields[1:] {
				key, value, _ := strings.Cut(f, "=")
				if name := keys[key]; name != "" {
					c[name] = number(t, value)
				}
			}
		}
		return c
	}
	for file, keys := range map[string]map[string]string{
		"blkio.throttle.io_service_bytes": {"Read": "rbps", "Write": "wbps"},
		"blkio.throttle.io_serviced":      {"Read": "riops", "Write": "wiops"},
	} {
		for line := range strings.Lines(readFile(t, group, file)) {
			fields := strings.Fields(line)
			if len(fields) == 3 && fields[0] == dev.String() && keys[fields[1]] != "" {
				c[keys[fields[1]]] = number(t, fields[2])
			}
		}
	}
	return c
}

// readRule reads the group's limits on a device; a rate without one is missing.
func readRule(t testing.TB, e environ.Environ, group string, dev blkdev.Number) counts {
	t.Helper()
	c := counts{}
	if e.Cgroups.IOInV2 {
		for line := range strings.Lines(readFile(t, group, "io.max")) {
			fields := strings.Fields(line)
			if len(fields) == 0 || fields[0] != dev.String() {
				continue
			}
			for _, f := range fields[1:] {
				if name, value, _ := strings.Cut(f, "="); value != "max" {
					c[name] = number(t, value)
				}
			}
		}
		return c
	}
	for name, file := range map[string]string{"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"} {
		for line := range strings.Lines(readFile(t, group, "blkio.throttle."+file+"_device")) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == dev.String() {
				c[name] = number(t, fields[1])
			}
		}
	}
	return c
}

func readFile(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func number(t testing.TB, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A reading is what the counters were at some moment from before to after.
type reading struct {
	before, after time.Time
	counts        counts
}

// A record is many of them, in order.
type record []reading

const readEvery = 5 * time.Millisecond

// follow reads the counters again and again while something is done.
func follow(t testing.TB, e environ.Environ, group string, dev blkdev.Number, while func()) (r record) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		while()
	}()
	for done := false; ; {
		one := reading{before: time.Now()}
		one.counts = readCounts(t, e, group, dev)
		one.after = time.Now()
		r = append(r, one)
		if done {
			return r
		}
		select {
		case <-ended:
			done = true
		case <-time.After(readEvery):
		}
	}
}

// at bounds what a counter was at a moment.
func (r record) at(name string, when time.Time) (least, most float64) {
	least, most = 0, math.Inf(1)
	for _, one := range r {
		v := float64(one.counts[name])
		if !one.after.After(when) {
			least = max(least, v)
		}
		if !one.before.Before(when) {
			most = min(most, v)
		}
	}
	return least, most
}

// rates bounds what the rate of a counter was over some window that began from first to last.
func (r record) rates(name string, first, last time.Time, window time.Duration) (least, most float64, err error) {
	least = math.Inf(1)
	for from := first; !from.After(last); from = from.Add(readEvery) {
		a, b := r.at(name, from)
		c, d := r.at(name, from.Add(window))
		if math.IsInf(b, 1) || math.IsInf(d, 1) || a == 0 {
			continue
		}
		least, most = min(least, (c-b)/window.Seconds()), max(most, (d-a)/window.Seconds())
	}
	if math.IsInf(least, 1) {
		return 0, 0, fmt.Errorf("the counters were read from %s to %s, not from %s to %s", r[0].after, r[len(r)-1].before, first, last.Add(window))
	}
	return least, most, nil
}
