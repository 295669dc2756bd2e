package cgroupfs

import (
	"reflect"
	"testing"
)

func TestParseStatV2(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Stat
	}{
		"empty": {"", nil},
		"two devices": {"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021\n",
			[]Stat{{number("8:16"), 1459200, 314773504, 192, 353}, {number("8:0"), 90430464, 299008000, 8950, 1252}}},
		// 5.15 and its neighbours print devices that counted nothing, without a line break.
		"devices without counters": {"7:0 7:1 254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n7:2 \n",
			[]Stat{{number("254:0"), 4096, 8192, 1, 2}}},
		"a line break is missing between counters": {"8:0 rbytes=1 wbytes=2 rios=3 wios=4 8:16 rbytes=5 wbytes=6 rios=7 wios=8\n",
			[]Stat{{number("8:0"), 1, 2, 3, 4}, {number("8:16"), 5, 6, 7, 8}}},
		"iocost and iolatency": {"8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 cost.vrate=100.00 cost.usage=5 use_delay=0 delay_nsec=0 depth=max avg_lat=7 win=100\n",
			[]Stat{{number("8:0"), 1, 2, 3, 4}}},
	} {
		got, err := parseStatV2(c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	for _, text := range []string{"sda rbytes=1\n", "8:0 rbytes=x\n", "8:0 rbytes=-1\n", "8:0 rbytes=99999999999999999999\n"} {
		if got, err := parseStatV2(text); err == nil {
			t.Errorf("parseStatV2(%q) = %v, want an error", text, got)
		}
	}
}

func TestStatsV1(t *testing.T) {
	g := groupOf(t, v1(t, map[string]string{
		"x/blkio.throttle.io_service_bytes": "8:16 Read 0\n8:16 Write 8192\n8:16 Sync 8192\n8:16 Async 0\n8:16 Discard 0\n8:16 Total 8192\n8:0 Read 4096\n8:0 Write 0\n8:0 Total 4096\nTotal 12288\n",
		"x/blkio.throttle.io_serviced":      "8:16 Read 0\n8:16 Write 2\n8:16 Total 2\n8:0 Read 1\n8:0 Write 0\nTotal 3\n",
		"y/blkio.throttle.io_service_bytes": "Total 0\n",
	}), "/x")
	got, err := g.Stats()
	want := []Stat{{Device: number("8:16"), WrittenBytes: 8192, Writes: 2}, {Device: number("8:0"), ReadBytes: 4096, Reads: 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Stats = %v, %v; want %v", got, err, want)
	}
	y, err := g.h.Group("/y")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := y.Stats(); err != nil || len(got) != 0 {
		t.Errorf("Stats of an idle group = %v, %v", got, err)
	}
	counters := func(s *Stat) (read, write *uint64) { return &s.Reads, &s.Writes }
	for _, text := range []string{"8:0 Read\n", "8:0 Read 1 2\n", "x Read 1\n", "8:0 Write -1\n"} {
		if got, err := parseStatV1(nil, text, counters); err == nil {
			t.Errorf("parseStatV1(%q) = %v, want an error", text, got)
		}
	}
}

func FuzzStats(f *testing.F) {
	for _, s := range []string{"8:0 rbytes=1 wbytes=2 rios=3 wios=4\n", "7:0 7:1 254:0 rbytes=4096\n", "8:0 Read 1\n8:0 Write 2\nTotal 3\n", "=", "8:0 =", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Reading must end without a panic, and each device be counted once a line at most.
		if stats, err := parseStatV2(text); err == nil && len(stats) > len(text) {
			t.Fatalf("%d counters in %d bytes", len(stats), len(text))
		}
		stats, err := parseStatV1(nil, text, func(s *Stat) (read, write *uint64) { return &s.Reads, &s.Writes })
		seen := map[string]bool{}
		for _, s := range stats {
			if err == nil && seen[s.Device.String()] {
				t.Fatalf("%q: %s is there twice", text, s.Device)
			}
			seen[s.Device.String()] = true
		}
	})
}
