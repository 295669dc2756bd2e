package why

import "testing"

// Where the owner takes other limits to keep, what is in force can be kept.
func TestARecordThatCanBeUpdated(t *testing.T) {
	f := good()
	f.Target, f.Group.Record = "docker:web", recordOf(vda, 5e6)
	f.Group.Record.Updates = true
	found, _ := Judge(f).Find("record-differs")
	if n := len(found.Fixes); n != 2 || len(found.Fixes[1].Lines) != 1 || found.Fixes[1].Lines[0] != "weir set docker:web --write 10000000 --on /dev/vda --persist" {
		t.Errorf("%+v", found)
	}
}
