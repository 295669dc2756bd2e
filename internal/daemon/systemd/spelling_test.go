package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

func TestNamesThatLast(t *testing.T) {
	for path, lasts := range map[string]bool{
		"8:0": false, "/dev/block/8:0": false, "/dev/sda": false, "/dev/sda1": false,
		"/dev/disk/by-id/ata-x": true, "/dev/mapper/vg-lv": true, "/dev/vg/lv": true, "/data": true, "/": true,
		"/my data": false, `/dev/disk/by-id/dm-name-my\x20data`: false, "/100%": false, // systemd would read another name
	} {
		if got := Lasts(path); got != lasts {
			t.Errorf("Lasts(%q) = %t", path, got)
		}
	}
}

func TestSpellingsOfTheUnitsOwnFiles(t *testing.T) {
	all := []PathLimit{{Path: "/dev/sda"}, {Path: "/data"}, {Path: "/dev/sdb"}}
	markOwn("[Service]\nIOReadBandwidthMax=/dev/sda 5M\n# IOReadBandwidthMax=/dev/sdb 5M\nIOWriteIOPSMax = \"/data/\" 5\nIOReadIOPSMax=\n", all)
	if !all[0].Own || !all[1].Own || all[2].Own {
		t.Errorf("own: %+v", all)
	}
	markOwn("IOReadBandwidthMax=%h/x 5M\n", all)
	if !all[2].Own {
		t.Error("a specifier could be any path")
	}
	for text, want := range map[string]string{
		"IOReadBandwidthMax=\\\n# IO\\\n /dev/sda 5M\n": "/dev/sda", "IOReadBandwidthMax=\"/my data\" 5M\n": "/my data", "IOReadBandwidthMax=/my\\ data 5M": "/my data",
		"IOReadBandwidthMax='/my data/' 5M\n": "/my data", "IOReadBandwidthMax=/my\" \"data\t5M\r\n": "/my data", "  IOReadBandwidthMax  =  /dev//sda 5M\n": "/dev/sda",
		"# x \\\nIOReadBandwidthMax=/dev/sda 5M\n": "/dev/sda", "; \\\nIOReadBandwidthMax=/my 5M": "", "IOReadBandwidthMax=\"/my": "", "IOReadBandwidthMax=": "", "IOReadBandwidthMax=/dev/sda\\": "/dev/sda",
	} {
		all := []PathLimit{{Path: "/dev/sda"}, {Path: "/my data"}}
		markOwn(text, all)
		if all[0].Own != (want == "/dev/sda") || all[1].Own != (want == "/my data") {
			t.Errorf("%q: %+v, want %q", text, all, want)
		}
	}
}

// A name is kept over boots if systemd stores a rate of it there: not what it stores until the next boot, and no
// rate that was lifted.
func TestNamesThatAreKept(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		persistentControl + "/x.service.d/50-IOWriteBandwidthMax.conf": "[Service]\nIOWriteBandwidthMax=\nIOWriteBandwidthMax=/var 5000000\nIOWriteBandwidthMax=/my data 5000000\n",
		persistentControl + "/x.service.d/50-IOReadBandwidthMax.conf":  "[Service]\nIOReadBandwidthMax=\nIOReadBandwidthMax=/data infinity\nIOWriteBandwidthMax=/data 5\n",
		runtimeControl + "/x.service.d/50-IOWriteBandwidthMax.conf":    "[Service]\nIOWriteBandwidthMax=/dev/sda 5000000\n",
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	all := []PathLimit{{Path: "/var"}, {Path: "/my data"}, {Path: "/data"}, {Path: "/dev/sda"}, {Path: "/va"}}
	if err := markKept(root, "x.service", all); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false, false, false} {
		if all[i].Kept != want {
			t.Errorf("%s: %t", all[i].Path, all[i].Kept)
		}
	}
}

func TestADropInForgetsASpelling(t *testing.T) {
	d := DropIn{Key: limit.RBPS, Path: filepath.Join(t.TempDir(), "50-IOReadBandwidthMax.conf")}
	const before = "# made by systemd\n[Service]\nIOReadBandwidthMax=\nIOReadBandwidthMax=/dev/sda 5000000\nIOReadBandwidthMax=/data 5000000\n"
	if err := os.WriteFile(d.Path, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if changed, err := d.forget([]string{"/dev/sda"}); changed != want || err != nil {
			t.Errorf("time %d: %t, %v", i, changed, err)
		}
	}
	text, err := os.ReadFile(d.Path)
	if want := "# made by systemd\n[Service]\nIOReadBandwidthMax=\nIOReadBandwidthMax=/data 5000000\n"; err != nil || string(text) != want {
		t.Errorf("left %q, %v", text, err)
	}
}

func TestRatesTogether(t *testing.T) {
	sda := blkdev.Number{Major: 8}
	writes := func(n uint64) limit.Limit { return limit.None.With(limit.WBPS, limit.PerSecond(n)) }
	all := []PathLimit{
		{Devices: []blkdev.Number{sda}, Limit: writes(7)},
		{Devices: []blkdev.Number{sda}, Limit: writes(5).With(limit.RIOPS, limit.PerSecond(9))},
		{Devices: []blkdev.Number{{Major: 9}}, Limit: writes(1)},
	}
	if got, want := Together(all, sda), writes(5).With(limit.RIOPS, limit.PerSecond(9)); got != want {
		t.Errorf("together %s, want %s", got, want)
	}
}

// systemd takes lines of up to 1 MiB.
func TestALongLineHidesNoRate(t *testing.T) {
	text := "# " + strings.Repeat("x", 100_000) + "\nIOWriteBandwidthMax=/dev/sda 5M\n"
	if !setsIn(text, limit.WBPS) {
		t.Error("it is not seen")
	}
}
