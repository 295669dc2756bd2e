package pacer

import (
	"encoding/json"
	"strings"
	"testing"
)

// A user can give a group a name that is not UTF-8. The pacer is asked for that group, and keeps it
// on record, not for one with U+FFFD in its name.
func TestPlacesOfAnyBytes(t *testing.T) {
	for _, place := range []Place{{"", "/a b"}, {"blkio", "/user/\xff\xfe"}, {"", "/\ufffd"}} {
		job := Job{Limited: place, WBPS: 5}
		data, err := json.Marshal(job)
		var back Job
		if err != nil || json.Unmarshal(data, &back) != nil || back.Limited != place {
			t.Errorf("%q: %s, %v, and back: %q", place, data, err, back.Limited)
		}
		if strings.Contains(string(data), "cell") {
			t.Errorf("a cell that there is not: %s", data)
		}
	}
	var job Job
	if err := json.Unmarshal([]byte(`{"limited":{"controller":"blkio","path":"/x"}}`), &job); err != nil || job.Limited != (Place{"blkio", "/x"}) { // as it has always been
		t.Errorf("%+v, %v", job, err)
	}
}
