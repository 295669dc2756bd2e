package api

import (
	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

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
	return WhyDryRun{SchemaOf("why.dry-run"), list(jobs, MoveOf)}
}
