package text

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// Each point is a line, with nothing where nothing is known.
func TestHistoryCSV(t *testing.T) {
	lab.Unit(t)
	var b strings.Builder
	if err := HistoryCSV(&b, apitest.History()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 722 {
		t.Fatalf("%d lines", len(lines))
	}
	for at, want := range map[int]string{
		0:   "time,window_seconds,device,rbps,wbps,riops,wiops,limit_rbps,limit_wbps,limit_riops,limit_wiops,some_percent,full_percent,dirty_bytes",
		1:   "2026-11-26T02:00:10Z,10,/dev/vdb,1000000,0,0,78.125,,10000000,,,71.25,66,12000000",
		351: "2026-11-26T02:58:30Z,10,/dev/vdb,,,,,,10000000,,,71.25,66,12000000",
		720: "2026-11-26T04:00:00Z,10,/dev/vdb,0,5000000,0,78.125,,5000000,,,71.25,66,12000000",
	} {
		if lines[at] != want {
			t.Errorf("line %d: %s\nwant %s", at, lines[at], want)
		}
	}
}

// A device's name begins no line, in a chart or among values.
func TestHistoryOfAnOddDevice(t *testing.T) {
	lab.Unit(t)
	s := apitest.History()
	for i := range s.Points {
		s.Points[i].Device.Node = "/dev/mapper/x\nweir: all is held"
	}
	var csv, data, messages strings.Builder
	if err := HistoryCSV(&csv, s); err != nil {
		t.Fatal(err)
	}
	History(&cli.Out{Data: &data, Messages: &messages}, s)
	for what, text := range map[string]string{"csv": csv.String(), "charts": data.String()} {
		if strings.Contains(text, "\nweir: all") || !strings.Contains(text, `/dev/mapper/x\nweir: all is held`) {
			t.Errorf("%s:\n%.500s", what, text)
		}
	}
}
