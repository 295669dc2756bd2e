package hold

import (
	"encoding/json"
	"testing"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/lab"
)

// A user can give a group a name that is not UTF-8: a change that is half done in it is on record for
// that group, so that it can be taken back.
func TestAJournalOfAnyBytes(t *testing.T) {
	lab.Unit(t)
	for _, group := range []string{"/a b", "/user/\xff\xfe"} {
		data, err := json.Marshal(journal{Group: rawtext.Text(group)})
		var back journal
		if err != nil || json.Unmarshal(data, &back) != nil || string(back.Group) != group {
			t.Errorf("%q: %s, %v, and back: %q", group, data, err, back.Group)
		}
	}
}
