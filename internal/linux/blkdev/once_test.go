package blkdev

import (
	"fmt"
	"testing"
)

// For many targets a spec is found once; what is not there is looked for again. Who gets a chain can add to it.
func TestForMany(t *testing.T) {
	tr := newTree(t)
	tr.disk("sda", "8:0")
	once := tr.fs().ForMany()
	c, err := once.Resolve(t.Context(), "8:0")
	if err != nil || len(c.Devices) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if c.Notes = append(c.Notes, "mine"); len(once.once["8:0"].Notes) != 0 {
		t.Error("a note of one is the others' too")
	}
	if _, err := once.Resolve(t.Context(), "8:16"); err == nil {
		t.Error("a device that is not there")
	}
	if len(once.once) != 1 {
		t.Errorf("%+v", once.once)
	}
	tr.remove("sys") // nothing is read any more
	if c, err := once.Resolve(t.Context(), "8:0"); err != nil || len(c.Devices) != 1 || len(c.Notes) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for i := range 2 * onceMost {
		once.once.keep(fmt.Sprint(i), c)
	}
	if len(once.once) != onceMost {
		t.Errorf("%d are remembered", len(once.once))
	}
}
