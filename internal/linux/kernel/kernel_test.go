package kernel

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

func tree(t *testing.T, files map[string]string) FS {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return New(root)
}

func TestRelease(t *testing.T) {
	r, err := ParseRelease("6.1.0-50-cloud-amd64")
	if err != nil || r.Major != 6 || r.Minor != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if !r.Before(6, 2) || !r.Before(7, 0) || r.Before(6, 1) || r.Before(5, 19) || (Release{}).Before(9, 9) {
		t.Error("6.1 is not between 5.19 and 6.2")
	}
	if _, err := ParseRelease("plan9"); err == nil {
		t.Error("plan9 is a version")
	}
	if r, err := ParseRelease("7.2-rc1"); err != nil || r.Minor != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The host's release comes from uname(2), and is what the file has that weir names as its source.
func TestReleaseOfThisHost(t *testing.T) {
	text, err := os.ReadFile(ReleaseFile)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := New("/").Release(); err != nil || r.Text+"\n" != string(text) {
		t.Errorf("%+v, %v; the file has %q", r, err, text)
	}
}

func gunzip(in io.Reader) (io.Reader, error) { return gzip.NewReader(in) }

func TestConfig(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("CONFIG_BLK_CGROUP=y\n# CONFIG_CGROUP_WRITEBACK is not set\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"proc/config.gz": packed.String(), "boot/config-6.1": "CONFIG_BLK_CGROUP=y\n"} {
		c, err := tree(t, map[string]string{file: text}).Config(Release{Text: "6.1"}, gunzip)
		if err != nil || c.File != "/"+file || c.Lacks("BLK_CGROUP") || !c.Lacks("CGROUP_WRITEBACK") {
			t.Errorf("%s: %+v, %v", file, c, err)
		}
	}
	if c, err := tree(t, nil).Config(Release{}, gunzip); err != nil || c.Lacks("BLK_CGROUP") {
		t.Errorf("nothing is known, and something is lacking: %+v, %v", c, err)
	}
}

func TestDirty(t *testing.T) {
	files := map[string]string{"proc/vmstat": "nr_free_pages 1\nnr_dirty 2\nnr_writeback 1\nnr_dirty_threshold 20\nnr_dirty_background_threshold 10\n"}
	for name, value := range map[string]string{"background_ratio": "10", "background_bytes": "0", "ratio": "0", "bytes": "8192",
		"expire_centisecs": "3000", "writeback_centisecs": "500"} {
		files["proc/sys/vm/dirty_"+name] = value + "\n"
	}
	d, there, err := tree(t, files).Dirty()
	page := uint64(os.Getpagesize())
	want := Dirty{BackgroundRatio: 10, Bytes: 8192, Expire: 30 * time.Second, Writeback: 5 * time.Second,
		BackgroundAt: 10 * page, LimitAt: 20 * page, Now: 2 * page, InWriteback: page}
	if err != nil || !there || d != want {
		t.Errorf("%+v, %t, %v; want %+v", d, there, err, want)
	}
	if _, there, err := tree(t, nil).Dirty(); there || err != nil {
		t.Errorf("without files: %t, %v", there, err)
	}
}

func TestBDI(t *testing.T) {
	dev := blkdev.Number{Major: 254}
	dir := "sys/class/bdi/254:0/"
	b, there, err := tree(t, map[string]string{dir + "max_ratio": "100\n"}).BDI(dev)
	if err != nil || !there || b.CanBeStrict {
		t.Errorf("an old kernel: %+v, %t, %v", b, there, err)
	}
	b, _, err = tree(t, map[string]string{dir + "max_ratio": "100\n", dir + "strict_limit": "1\n", dir + "max_bytes": "16777216\n"}).BDI(dev)
	if err != nil || !b.Strict || b.MaxBytes != 16<<20 || !b.CanBeStrict {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestSwaps(t *testing.T) {
	s, err := tree(t, map[string]string{"proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/vda3 partition 1048572 4 -2\n"}).Swaps()
	if err != nil || len(s) != 1 || s[0] != (Swap{"/dev/vda3", 4096}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBounded(t *testing.T) {
	files := map[string]string{}
	for name, values := range map[string][3]string{"8:0": {"0", "0", "100"}, "8:16": {"1", "0", "100"}, "8:32": {"0", "5", "100"}, "0:53": {"0", "0", "1"}} {
		dir := "sys/class/bdi/" + name + "/"
		files[dir+"strict_limit"], files[dir+"min_ratio"], files[dir+"max_ratio"] = values[0], values[1], values[2]
	}
	files["sys/class/bdi/8:16/max_bytes"] = "16777216\n"
	all, err := tree(t, files).Bounded()
	want := []Bounded{{Name: "0:53", MaxPercent: 1}, {Name: "8:16", Strict: true, MaxPercent: 100, MaxBytes: 16 << 20}, {Name: "8:32", MinPercent: 5, MaxPercent: 100}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
	if all, err := tree(t, nil).Bounded(); all != nil || err != nil {
		t.Errorf("without bdis: %+v, %v", all, err)
	}
}
