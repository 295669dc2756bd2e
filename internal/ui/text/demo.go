package text

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/demo"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Demo is a table of what was measured.
func Demo(rows []demo.Row) string {
	table := [][]string{{"WRITES", "LIMIT", "WRITER", "DISK", ""}}
	for _, r := range rows {
		asked := r.Limit.Format(limit.WBPS)
		if r.Limit.IsUnlimited() {
			asked = "none"
		}
		writes := string(r.Path)
		if r.Hold == limit.HoldPacer {
			writes += ", weir's pacer"
		}
		table = append(table, []string{writes, asked, limit.FormatMeasured(r.Writer) + "/s", limit.FormatMeasured(r.Device) + "/s", heldOf(r)})
	}
	return cli.Table(table, 1, 2, 3)
}

func heldOf(r demo.Row) string {
	switch {
	case r.Limit.IsUnlimited():
		return ""
	case r.Held:
		return "held"
	case r.CannotTell:
		return "cannot tell: " + r.Why
	}
	return "NOT HELD: " + r.Why
}
