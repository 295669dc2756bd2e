package keep

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

// Records of older weirs, which had no name for what holds buffered writes, and of newer ones, which
// have fields that this weir does not know.
func TestRecordsOfOtherWeirs(t *testing.T) {
	root := t.TempDir()
	saved := limit.Limit{}.With(limit.WBPS, limit.PerSecond(10_000_000)).With(limit.RIOPS, limit.Unlimited)
	for target, text := range map[string]string{
		"docker:0123":           `{"target":"docker:0123","name":"docker:web","limits":[{"on":"/data","limit":{"wbps":10000000,"riops":"max"}}]}` + "\n",
		"docker:4567":           `{"target":"docker:4567","name":"docker:web","limits":[{"on":"/data","limit":{"rbps":null,"wbps":10000000,"riops":"max","wiops":null}}]}`,
		"containerd:k8s.io/job": `{"schema":7,"target":"containerd:k8s.io/job","name":"docker:web","limits":[{"on":"/data","limit":{"wbps":10000000,"riops":"max","weight":5}}],"more":{}}`,
	} {
		put(t, filepath.Join(root, SavedPath(target)), text)
		want := Saved{Target: target, Name: "docker:web", Entries: []limit.Asked{{On: "/data", Limit: saved}}}
		if r, err := ReadSaved(root, target); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, r, err, want)
		}
	}
	if all, err := ListSaved(root); err != nil || len(all) != 3 {
		t.Errorf("%d of 3 records: %v", len(all), err)
	}
}
