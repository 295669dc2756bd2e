package plot

import (
	"fmt"
	"html"
	"strings"
)

// A legend is the names of a panel's lines, in as many rows as they need.
type legend struct {
	svg  string
	rows int
}

// nameWidth is about how wide a name is, with its mark.
func nameWidth(name string) float64 { return 40 + 6.2*float64(len([]rune(name))) }

func (c Chart) legend(f frame, highest []float64) legend {
	l := legend{rows: 1}
	var b strings.Builder
	x := left
	add := func(name, mark string) {
		if x > left && x+nameWidth(name)-17 > width {
			x = left
			l.rows++
		}
		y := 28 + legendRow*float64(l.rows-1)
		fmt.Fprintf(&b, `<path d="M%.1f %gh18" %s/><text x="%.1f" y="%g">%s</text>`+"\n", x, y, mark, x+23, y+4, html.EscapeString(name))
		x += nameWidth(name)
	}
	for i, line := range c.Lines {
		if line.Name == "" {
			continue
		}
		name := line.Name
		if highest[i] > f.top {
			name += " (▲ up to " + c.format(highest[i]) + ")"
		}
		mark := fmt.Sprintf(`stroke="%s" stroke-width="2"`, c.colour(i))
		switch {
		case c.Stacked:
			mark = fmt.Sprintf(`stroke="%s" stroke-width="9"`, c.colour(i))
		case line.Faint:
			mark = fmt.Sprintf(`stroke="%s" %s`, c.colour(i), faint)
		}
		add(name, mark)
	}
	if c.Level > 0 {
		add(c.LevelName, `stroke="#dc2626" stroke-width="2" stroke-dasharray="6 4"`)
	}
	if c.To > c.From && c.FromName != "" {
		add(c.FromName, `stroke="#d1d5db" stroke-width="9"`)
	}
	l.svg = b.String()
	return l
}
