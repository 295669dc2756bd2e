package quota

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Records of older weirs, which named no file system, and of newer ones, which have fields that this weir
// does not know. The file beside a record tells older and newer weirs alike that one is working on it.
func TestRecordsOfOtherWeirs(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for text, want := range map[string]record{
		`{"project":1073741824,"trees":[{"path":"/srv/data","inode":42}],"mount":"/srv","state":"set"}` + "\n": {Project: 1 << 30, Trees: []Tree{{"/srv/data", 42}}, Mount: "/srv", State: isSet},
		`{"project":1073807360,"name":"docker:web","lasting":"docker:0123","trees":[{"path":"/a","inode":1},{"path":"/b","inode":2}],"mount":"/","state":"setting"}`: {Project: 1<<30 + apart,
			Name: "docker:web", Lasting: "docker:0123", Trees: []Tree{{"/a", 1}, {"/b", 2}}, Mount: "/", State: setting},
		`{"project":7,"trees":[{"path":"/c","inode":3,"deep":true}],"mount":"/","fs":"u","state":"clearing","new":true,"lent":true,"inodes":{}}`: {Project: 7,
			Trees: []Tree{{"/c", 3}}, Mount: "/", FS: "u", State: clearing, New: true, Lent: true},
	} {
		if err := os.WriteFile(s.path(want.Project), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := s.records()
		if r, missing := s.recorded(Place{Project: want.Project}, all); err != nil || missing != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s:\n%+v, %v, %v; want\n%+v", text, r, err, missing, want)
		}
	}
	if all, err := s.records(); err != nil || len(all) != 3 {
		t.Errorf("%d of 3 records: %v", len(all), err)
	}
	release, free, err := s.hold(7)
	if err != nil || !free {
		t.Fatal(free, err)
	}
	defer release()
	if _, err := os.Stat(filepath.Join(s.Dir, "7.lock")); err != nil {
		t.Error(err)
	}
}

// A directory's name can be of any bytes. Its record says which one it is.
func TestARecordOfAnyBytes(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "quotas")}
	if err := s.store().Make(); err != nil {
		t.Fatal(err)
	}
	want := record{Project: 7, Trees: []Tree{{"/srv-\xff/data-\xfe", 5}, {"/srv-\xff/b", 6}}, Mount: "/srv-\xff", FS: "u", State: isSet}
	if err := s.save(want); err != nil {
		t.Fatal(err)
	}
	if all, err := s.records(); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
}
