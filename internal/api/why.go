package api

import (
	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/mend"
	"github.com/weir-io/weir/internal/why"
)

// A Why is weir why's document.
type Why struct {
	Schema
	why.Report
	Mended []Moved `json:"mended,omitempty"` // with --mend
}

// WhyOf makes the document of a report, and of the files that were moved before it.
func WhyOf(r why.Report, mended []Moved) Why { return Why{SchemaOf("why"), r, mended} }

// A Move is a file whose writeback is moved.
type Move struct {
	File   string        `json:"file"`
	Inode  uint64        `json:"inode"`
	Number blkdev.Number `json:"number"` // of the file system
	From   string        `json:"from"`
	To     string        `json:"to"`
}

// A Moved is what came of a Move.
type Moved struct {
	Move
	Moved   bool    `json:"moved"`
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	Refused string  `json:"refused"` // why it was not moved
}

// MoveOf makes the entry of a file to be moved.
func MoveOf(j mend.Job) Move {
	return Move{j.File.Path, j.File.Inode, j.File.Device, j.File.Owner.IO.String(), j.Into.Path()}
}

// MovedOf makes the entry of a file that was moved, or was refused.
func MovedOf(j mend.Job, r mend.Result) Moved {
	return Moved{Move: MoveOf(j), Moved: r.Refused == "", Rounds: r.Mended.Rounds, Seconds: r.Mended.Took.Seconds(), Refused: r.Refused}
}

// A WhyDryRun is the document of weir why --mend --dry-run.
type WhyDryRun struct {
	Schema
	Files []Move `json:"files"`
}

// WhyDryRunOf makes the document of the files that would be moved.
func WhyDryRunOf(jobs []mend.Job) WhyDryRun {
	doc := WhyDryRun{SchemaOf("why.dry-run"), []Move{}}
	for _, j := range jobs {
		doc.Files = append(doc.Files, MoveOf(j))
	}
	return doc
}
