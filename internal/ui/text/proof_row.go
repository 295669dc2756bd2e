package text

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/cli"
)

// cellsOfRow are a row's cells in the table of a proof.
func cellsOfRow(row prove.Row) []string {
	verdict := VerdictOf(row) + marks(row)
	if row.Window == 0 {
		return []string{row.Name, "–", "–", "–", "", "", "", "", verdict}
	}
	ratio, within, windows := ratioText(row)
	return []string{row.Name, writerText(row), row.Format(row.Cgroup.Rate), row.Format(row.Disk.Rate), ratio, within, windows, fmt.Sprintf("%.0f", row.Ops), verdict}
}

func writerText(row prove.Row) string {
	if row.Path == "" && row.Writer.Rate == 0 {
		return "–"
	}
	return row.Format(row.Writer.Rate)
}

// VerdictOf writes a row's verdict, and how far the writer is ahead of the disk.
func VerdictOf(row prove.Row) string {
	switch row.Verdict {
	case prove.NotHeld:
		return "NOT HELD"
	case prove.HeldAtDevice:
		ahead := ""
		if row.Dirty > 0 {
			ahead = fmt.Sprintf(": the writer is ahead by %s, %s to drain", limit.FormatMeasured(float64(row.Dirty)), cli.Duration(row.Drain))
		}
		return "held at the device" + ahead
	}
	return string(row.Verdict)
}

// noteOf joins why a row is not held, and what must be known beside.
func noteOf(row prove.Row) string {
	parts := slices.Clone(row.Warning)
	if row.Why != "" {
		parts = slices.Insert(parts, 0, row.Why)
	}
	return strings.Join(parts, "; ")
}

func ratioText(row prove.Row) (ratio, within, windows string) {
	asked := float64(row.Rate)
	digits := 2
	if row.Ratio >= 9.995 {
		digits = 1
	}
	ratio = fmt.Sprintf("%.*f", digits, row.Ratio)
	if !math.IsInf(row.Within, 0) {
		within = fmt.Sprintf("±%.*f", digits, row.Within)
	}
	judged := row.Cgroup
	if judged.Rate < row.Disk.Rate/2 && row.Verdict != prove.Held {
		judged = row.Disk
	}
	windows = fmt.Sprintf("%.2f–%.2f", judged.Low/asked, judged.High/asked)
	return ratio, within, windows
}

// marks are the numbers of a row's findings, as they stand behind its verdict.
func marks(row prove.Row) string {
	text := ""
	for _, n := range row.Findings {
		text += fmt.Sprintf(" [%d]", n)
	}
	return text
}
