package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// Whatever a journal that somebody else has written says, each change is one printable line.
func TestLogOfOthers(t *testing.T) {
	lab.Unit(t)
	const evil = "x\x1b[2J\ny\xff\u202e"
	e := api.LogEntry{At: time.Unix(1e9, 0), By: evil, What: evil, Target: evil, Plan: evil, Why: evil}
	with := e
	with.Changes = []api.LogChange{{Device: evil, From: limit.None, To: limit.None.With(limit.WBPS, limit.PerSecond(10))}}
	var data, said strings.Builder
	Log(&cli.Out{Data: &data, Messages: &said}, api.Log{Entries: []api.LogEntry{e, with}})
	if text := data.String(); strings.Count(text, "\n") != 3 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%q", text)
	}
}
