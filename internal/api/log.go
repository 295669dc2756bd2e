package api

import (
	"time"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Log is what weird has changed, and what it has seen others change: the document of weird log.
type Log struct {
	Schema
	Entries []LogEntry `json:"entries"`
	Torn    uint64     `json:"torn"`
	Lost    uint64     `json:"lost"`
	LeftOut uint64     `json:"left_out"`
}

// A LogEntry is one change, or what there is to say beside changes.
type LogEntry struct {
	At      time.Time   `json:"at"`
	By      string      `json:"by"`
	What    string      `json:"what"`
	Target  string      `json:"target"`
	Plan    string      `json:"plan"`
	Changes []LogChange `json:"changes"`
	Why     string      `json:"why"`
}

// A LogChange is the limits on one device, before and after.
type LogChange struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	From   limit.Limit   `json:"from"`
	To     limit.Limit   `json:"to"`
}

// LogOf makes it.
func LogOf(l journal.Log) Log {
	return Log{SchemaOf("log"), list(l.Entries, logEntryOf), l.Torn, l.Lost, l.LeftOut}
}

func logEntryOf(e journal.Entry) LogEntry {
	return LogEntry{e.At, e.By, string(e.What), e.Target, e.Plan,
		list(e.Changes, func(c journal.Change) LogChange { return LogChange{c.Node, c.Device, c.From, c.To} }), e.Why}
}
