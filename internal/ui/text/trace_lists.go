package text

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
)

// tableMost is how many rows people get of what can be thousands.
const tableMost = 20

// slow lists single operations, of which there were count.
func slow(out *cli.Out, what string, all []trace.Slow, count uint64) {
	if count == 0 {
		return
	}
	out.Print("")
	out.Print("%s %s:", cli.CountOf(count, "operation", "operations"), what)
	shown := slices.Clone(all[:min(len(all), tableMost)])
	rows := [][]string{{"  AT", "PROCESS", "", "", "TOOK", "MAINLY", "FILE"}}
	for _, s := range shown {
		rows = append(rows, []string{fmt.Sprintf("  %.3f s", s.After.Seconds()), fmt.Sprintf("%s (%d)", plain.Line(s.Process), s.PID), s.Kind.String(), sizeOf(s.Bytes), cli.Latency(s.Took),
			s.Cause().Title(), plain.Line(s.File)})
	}
	rowsOf(out, rows, count, []int{0, 3, 4})
}

// files lists sums by file.
func files(out *cli.Out, all []trace.File) {
	if len(all) == 0 {
		return
	}
	out.Print("")
	out.Print("by file:")
	rows := [][]string{{"  ", "CALLS", "BYTES", "TIME", "MAX", "MAINLY", "FILE"}}
	for _, f := range all[:min(len(all), tableMost)] {
		rows = append(rows, []string{"  " + f.Kind.String(), cli.Count(f.Count), sizeOf(f.Bytes), cli.Latency(f.Sum()), cli.Latency(f.Max), f.Cause().Title(), plain.Line(f.File)})
	}
	rowsOf(out, rows, uint64(len(all)), []int{1, 2, 3, 4})
}

// rowsOf prints a table with its heads, and how many rows it leaves out.
func rowsOf(out *cli.Out, rows [][]string, count uint64, right []int) {
	out.Text(cli.Table(rows, right...))
	if left := count - uint64(len(rows)-1); left > 0 {
		out.Print("  and %s more (--json lists more of them)", cli.Count(left))
	}
}
