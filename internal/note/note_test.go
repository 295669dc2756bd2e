package note

import "testing"

func TestString(t *testing.T) {
	for _, c := range []struct {
		note Note
		want string
	}{
		{Infof("a", "%d files", 2), "2 files"},
		{Noticef("b", "on %s", "sda"), "note: on sda"},
		{Warningf("c", "it may %s", "hang"), "warning: it may hang"},
	} {
		if got := c.note.String(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.note, got, c.want)
		}
	}
}
