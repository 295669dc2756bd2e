package near

import (
	"reflect"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	if got := Names("writ", []string{"write", "write-iops"}); !reflect.DeepEqual(got, []string{"write"}) {
		t.Errorf("Names(writ) = %q", got)
	}
	verbs := strings.Fields("clear completion demo help import prove quota restore run set show trace version volume why")
	for typed, want := range map[string]string{
		"rnu": "run", "sho": "show", "st": "set", "frob": "", "vol": "volume", "pro": "prove", "x": "", "": "", "traec": "trace", "re": "restore", "writ": "", "RUN": "run", "Shwo": "show", "VOL": "volume",
	} {
		if got := Names(typed, verbs); !reflect.DeepEqual(append([]string{}, got...), strings.Fields(want)) {
			t.Errorf("Names(%q) = %q, want %q", typed, got, want)
		}
	}
}
