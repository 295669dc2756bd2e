package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/cli"
)

// ProofTitle says what was proved, where.
func ProofTitle(p prove.Proof) string {
	what := "a group of its own"
	switch {
	case p.Target != nil:
		what = p.Target.String()
	case len(p.Phases) > 0:
		what = "a neighbour"
	}
	var places []string
	for _, s := range p.Spots {
		where := s.Device.Node
		switch {
		case s.Scratch:
			where = "scratch disk " + where
		case p.Target == nil:
			where = s.Dir + " on " + where
		}
		if s.FSType != "" {
			where += ", " + s.FSType
		}
		places = append(places, where+": "+rates(s.Limit))
	}
	return fmt.Sprintf("%s · %s · cgroup %s · kernel %s", what, strings.Join(places, "; "), p.Version, p.Kernel)
}

// Proof prints the rows of a proof, the findings behind them and the command that explains those,
// and its verdict.
func Proof(out *cli.Out, p prove.Proof, asked string) {
	out.Print("%s", ProofTitle(p))
	if len(p.Phases) > 0 {
		phases(out, p)
	}
	table := [][]string{{"", "WRITER", "CGROUP", "DEVICE", "÷ LIMIT", "", "ANY 1 s", "OPS", ""}}
	several := len(p.Spots) > 1
	for i, row := range p.Rows {
		if several && (i == 0 || p.Rows[i-1].Device.Number != row.Device.Number) {
			table = append(table, []string{row.Device.Node + " (" + row.Device.Number.String() + ")"})
		}
		table = append(table, cellsOfRow(row))
	}
	out.Text(cli.Table(table, 1, 2, 3, 4, 6, 7))
	findings := p.Findings()
	for _, f := range findings {
		out.Print("[%d] %s: %s", f.Number, f.Code, f.Text)
	}
	if len(findings) > 0 {
		out.Print("    %s", asked)
	}
	for _, row := range p.Rows {
		if row.Why == "" && len(row.Warning) == 0 {
			continue
		}
		note := row.Name + ": " + noteOf(row)
		if several {
			note = row.Device.Node + ", " + note
		}
		out.Print("%s", note)
	}
	for _, u := range p.Untried {
		out.Print("%s, %s: not tried; %s", u.Device.Node, u, withRemedy(u.Why, u.Remedy))
	}
	out.Print("%s · %s", windows(p), exitText(p))
}

// phases prints what the neighbour got.
func phases(out *cli.Out, p prove.Proof) {
	table := [][]string{{"READER", "READS/s", "p50", "p99", "LONGEST", "THE LOAD'S " + strings.ToUpper(p.Rows[0].Key.Direction()) + "S"}}
	for _, one := range p.Phases {
		hog := "–"
		if one.Hog > 0 {
			hog = p.Rows[0].Format(one.Hog)
		}
		table = append(table, []string{one.Name, fmt.Sprintf("%.0f", one.Reads), cli.Latency(one.P50), cli.Latency(one.P99), cli.Latency(one.Max), hog})
	}
	out.Text(cli.Table(table, 1, 2, 3, 4, 5))
}

func windows(p prove.Proof) string {
	var shortest, longest time.Duration
	for i, row := range p.Rows {
		if i == 0 || row.For < shortest {
			shortest = row.For
		}
		longest = max(longest, row.For)
	}
	rows := cli.Plural(len(p.Rows), "row", "rows") + " in " + cli.Duration(p.Took)
	switch {
	case p.Observed:
		return cli.Duration(longest) + " observed"
	case shortest == longest:
		return cli.Duration(longest) + " per row, start-up left out · " + rows
	}
	return cli.Duration(shortest) + " to " + cli.Duration(longest) + " per row, start-up left out · " + rows
}

func exitText(p prove.Proof) string {
	switch p.Verdict() {
	case prove.NotHeld:
		return "NOT HELD (exit 1)"
	case prove.CannotTell:
		if p.Measured() != prove.CannotTell {
			return fmt.Sprintf("cannot tell of %s; the rest is held (exit 3)", cli.Plural(len(p.Untried), "limit", "limits"))
		}
		return "cannot tell (exit 3)"
	}
	return string(prove.Held)
}

// rates names the rates of a limit that are numbers: "write 10 MB/s, read 500 ops/s".
func rates(l limit.Limit) string {
	var parts []string
	for _, k := range limit.Keys {
		if _, bound := l.Get(k).Number(); bound {
			parts = append(parts, k.Direction()+" "+l.Get(k).Format(k))
		}
	}
	return strings.Join(parts, ", ")
}
