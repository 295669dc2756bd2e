package dirty

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
)

const mib = 1 << 20

// ten is a host of 10,000 MiB that can become dirty, at the kernel's own settings.
func ten() kernel.Dirty {
	return kernel.Dirty{BackgroundRatio: 10, Ratio: 20, BackgroundAt: 1000 * mib, LimitAt: 2000 * mib}
}

func TestHostLevels(t *testing.T) {
	if l, there := hostLevels(ten()); !there || l != (Levels{1000 * mib, 1500 * mib, 2000 * mib}) {
		t.Errorf("%+v, %t", l, there)
	}
	if l, _ := hostLevels(kernel.Dirty{BackgroundAt: 8, LimitAt: 8}); l != (Levels{4, 6, 8}) {
		t.Errorf("a background threshold at the limit: %+v", l)
	}
	if _, there := hostLevels(kernel.Dirty{}); there {
		t.Error("levels of nothing")
	}
}

func TestOwnLevels(t *testing.T) {
	m := cgroupfs.Memory{Max: 100 * mib, Dirty: 10 * mib, Clean: 30 * mib}
	l, there := ownLevels(ten(), m, 50*mib) // 40 are page cache, 50 are free: 90 can be dirty
	if want := (Levels{9 * mib, 27 * mib / 2, 18 * mib}); !there || l != want {
		t.Errorf("%+v, %t; want %+v", l, there, want)
	}
	if _, there := ownLevels(ten(), m, math.MaxUint64); there {
		t.Error("a group without a bound has thresholds")
	}
	bytes := kernel.Dirty{BackgroundRatio: 10, BackgroundAt: 1000 * mib, Bytes: 5000 * mib, LimitAt: 5000 * mib}
	if l, _ := ownLevels(bytes, m, 50*mib); l.Limit != 45*mib || l.Background != 9*mib {
		t.Errorf("half of the host in bytes: %+v", l)
	}
	bytes.BackgroundRatio, bytes.BackgroundBytes = 0, 1000*mib
	if _, there := ownLevels(bytes, m, 50*mib); there {
		t.Error("what both are of is known")
	}
	busy := ten()
	busy.Now = 9980 * mib // 20 of the host are clean, and the group has those
	if l, _ := ownLevels(busy, m, 50*mib); l.Limit != 8*mib {
		t.Errorf("of a host that has nothing clean left: %+v", l)
	}
}

func TestSummaries(t *testing.T) {
	l := &Levels{10, 15, 20}
	all := []Reading{
		{Host: Count{Dirty: 5}, HostLevels: l},
		{Host: Count{Dirty: 10, Writeback: 8}, HostLevels: l, Group: &Count{Dirty: 1}},
		{Host: Count{Dirty: 16}, HostLevels: l, Group: &Count{Dirty: 3}, OwnLevels: &Levels{1, 2, 4}},
		{Host: Count{Dirty: 15}, HostLevels: l},
	}
	host := Host(all)
	if host.Peak != (Count{10, 8}) || host.Share != 0.9 || host.Throttled != 2 || host.Readings != 4 {
		t.Errorf("%+v", host)
	}
	group := Group(all)
	if group == nil || group.Peak.Dirty != 3 || group.Levels == nil || group.Share != 0.75 || group.Throttled != 1 || group.Readings != 2 {
		t.Errorf("%+v", group)
	}
	if Group(all[:1]) != nil {
		t.Error("a group that nobody asked for")
	}
}

// host writes a host's files below a directory.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"background_ratio", "background_bytes", "ratio", "bytes", "expire_centisecs", "writeback_centisecs"} {
		files["proc/sys/vm/dirty_"+name] = "10\n"
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWatchLooksTwiceAtLeast(t *testing.T) {
	root := host(t, map[string]string{"proc/vmstat": "nr_dirty 3\nnr_writeback 1\nnr_dirty_threshold 20\nnr_dirty_background_threshold 10\n"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	seen := 0
	all, settings, err := Watch(ctx, kernel.New(root), nil, time.Hour, func(Reading) { seen++ })
	page := uint64(os.Getpagesize())
	if err != nil || len(all) != 2 || seen != 2 || settings.Ratio != 10 {
		t.Fatalf("%+v, %+v, %v", all, settings, err)
	}
	if r := all[1]; r.Host != (Count{3 * page, page}) || r.HostLevels.Throttle != 15*page || r.Group != nil || r.At < all[0].At {
		t.Errorf("%+v", r)
	}
	if _, _, err := Watch(ctx, kernel.New(t.TempDir()), nil, time.Hour, func(Reading) {}); err == nil {
		t.Error("a host without settings was read")
	}
}

func TestEveryBoundsWhatIsKept(t *testing.T) {
	for _, window := range []time.Duration{0, time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if n := window / Every(window); n > readingsMost {
			t.Errorf("%s: %d readings", window, n)
		}
	}
	if Every(time.Second) != 100*time.Millisecond {
		t.Error(fmt.Sprint(Every(time.Second)))
	}
}
