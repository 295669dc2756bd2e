package text

import (
	"strings"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Log prints what weird has changed, the oldest first, and what of it is missing.
func Log(out *cli.Out, l api.Log) {
	rows := [][]string{{"TIME", "TARGET", "BY", "WHAT", "WHY"}}
	for _, e := range l.Entries {
		at, name, did := e.At.Local().Format("2006-01-02 15:04:05"), plain.Line(e.Target), plain.Line(e.What)
		why := plain.Line(e.Why)
		if e.Plan != "" {
			why = strings.TrimSuffix("plan "+plain.Line(e.Plan)+": "+why, ": ")
		}
		if len(e.Changes) == 0 {
			rows = append(rows, []string{at, name, plain.Line(e.By), did, why})
		}
		for _, c := range e.Changes {
			what := did
			if e.What == string(journal.Failed) {
				what += " to set"
			}
			rows = append(rows, []string{at, name, plain.Line(e.By), what + " " + logged(c), why})
		}
	}
	if len(rows) > 1 {
		out.Text(cli.Table(rows))
	} else {
		out.Print("weird has recorded no changes of this kind")
	}
	if l.LeftOut > 0 {
		out.Print("%s left out", cli.CountOf(l.LeftOut, "older one is", "older ones are"))
	}
	if l.Lost > 0 {
		out.Print("%d could not be recorded when they happened", l.Lost)
	}
	if l.Torn > 0 {
		out.Print("%s", cli.CountOf(l.Torn, "line cannot be read: a crash tore it", "lines cannot be read: a crash tore them"))
	}
}

// logged spells the rates that are others than before.
func logged(c api.LogChange) string {
	var all []string
	for _, k := range limit.Keys {
		if from, to := c.From.Get(k), c.To.Get(k); from != to {
			all = append(all, k.Direction()+" "+rateOrNone(from, k)+" → "+rateOrNone(to, k))
		}
	}
	device := plain.Line(c.Device)
	if device == "" {
		device = c.Number.String()
	}
	return strings.Join(all, ", ") + " on " + device
}

func rateOrNone(r limit.Rate, k limit.Key) string {
	if _, bound := r.Number(); !bound {
		return "none"
	}
	return r.Format(k)
}
