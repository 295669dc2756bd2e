package volume

import (
	"os"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// Records of older weirs, which knew neither mounts nor generations of inodes, and of newer ones, which
// have fields that this weir does not know.
func TestRecordsOfOtherWeirs(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if err := os.Mkdir(s.records(), 0o700); err != nil {
		t.Fatal(err)
	}
	five := limit.Limit{}.With(limit.WBPS, limit.PerSecond(5))
	for text, want := range map[string]Volume{
		`{"name":"data","mount":"/srv/data","image":"/var/lib/weir/volumes/data.img","fs":"ext4","limit":{"wbps":5},"for":["docker:web"],"file":{"inode":12,"born":1700000000000000000},"folder":11,"made_mount":true,"loop":256,"device":"0:0"}` + "\n": {Name: "data", Mount: "/srv/data",
			Image: "/var/lib/weir/volumes/data.img", FS: "ext4", Limit: five, For: []string{"docker:web"}, File: identity{Inode: 12, Born: 1700000000000000000}, Folder: 11, MadeMount: true, Loop: 256},
		`{"name":"mine","mount":"/mine","fs":"xfs","limit":{"wbps":5},"file":{"inode":0,"born":0},"device":"8:16","before":{"root":{"wbps":"max"},"dirty":{}}}`: {Name: "mine", Mount: "/mine",
			FS: "xfs", Limit: five, Device: blkdev.Number{Major: 8, Minor: 16}, Before: &bounds{Root: limit.Limit{}.With(limit.WBPS, limit.Unlimited)}},
		`{"name":"new","mount":"/new","fs":"xfs","limit":{"wbps":5,"weight":7},"file":{"inode":3,"born":0,"generation":4,"uuid":"x"},"device":"0:0","mount_id":9,"encrypted":false}`: {Name: "new", Mount: "/new",
			FS: "xfs", Limit: five, File: identity{Inode: 3, Generation: 4}, MountID: 9},
	} {
		if err := os.WriteFile(s.path(want.Name, ready), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Find(want.Name); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%s:\n%+v, %v; want\n%+v", text, v, err, want)
		}
	}
	if all, err := s.List(); err != nil || len(all) != 3 {
		t.Errorf("%d of 3 records: %v", len(all), err)
	}
}

// A volume can be mounted, and its file can be, in a directory whose name is of any bytes.
func TestARecordOfAnyBytes(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if err := os.Mkdir(s.records(), 0o700); err != nil {
		t.Fatal(err)
	}
	want := Volume{Name: "odd", Mount: "/srv-\xff/odd", Image: "/disk-\xfe/odd.img", FS: "xfs", File: identity{Inode: 3}}
	if err := s.save(want, ready); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Find("odd"); err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("%+v, %v; want %+v", v, err, want)
	}
}
