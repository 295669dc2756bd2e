package plot

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
)

// labelRunes is what a value beside Y has on a terminal.
const labelRunes = 8

// marks draw the lines of a chart on a terminal, faint ones with faintMark.
var marks = []rune{'○', '●', '◆', '□'}

const faintMark = '·'

// Text draws a chart of lines with characters: rows of a plot as wide as columns, labels
// of Y included, with the title and the X axis beside them. Of several values for one
// place the largest is drawn.
func Text(c Chart, columns, rows int) string {
	wide := max(columns-labelRunes-2, 8)
	f, _ := c.frame()
	f.height, f.above = panel, above
	grid := make([][]rune, rows)
	for i := range grid {
		grid[i] = []rune(strings.Repeat(" ", wide))
	}
	row := func(v float64) int { return rows - 1 - int(math.Round(f.part(v)*float64(rows-1))) }
	if c.Level > 0 {
		copy(grid[row(c.Level)], []rune(strings.Repeat("╌", wide)))
	}
	solid := 0
	var names []string
	for _, l := range c.Lines {
		mark := faintMark
		if !l.Faint {
			mark = marks[solid%len(marks)]
			solid++
		}
		if l.Name != "" {
			names = append(names, string(mark)+" "+plain.Line(l.Name))
		}
		for x, v := range spread(l.Points, f, wide) {
			if !math.IsNaN(v) {
				grid[row(v)][x] = mark
			}
		}
	}
	if c.Level > 0 {
		names = append(names, "╌ "+plain.Line(c.LevelName))
	}
	labels := make([]string, rows)
	for _, v := range f.ticks() {
		labels[row(v)] = c.format(v)
	}
	var b strings.Builder
	title := c.Title // such as a device's name
	if c.Note != "" {
		title += " · " + c.Note
	}
	b.WriteString(plain.Line(title) + "\n")
	for _, line := range fill(names, "   ", wide) {
		b.WriteString(strings.Repeat(" ", labelRunes+2) + line + "\n")
	}
	for i, cells := range grid {
		pad := strings.Repeat(" ", max(0, labelRunes-len([]rune(labels[i]))))
		b.WriteString(strings.TrimRight(pad+labels[i]+" ┤"+string(cells), " ") + "\n")
	}
	end := fmt.Sprintf("%.4g %s", f.x1, c.XUnit)
	start := fmt.Sprintf("%.4g", f.x0)
	fmt.Fprintf(&b, "%s%s%s%s\n", strings.Repeat(" ", labelRunes+2), start, strings.Repeat(" ", max(1, wide-len([]rune(start))-len([]rune(end)))), end)
	return b.String()
}

// fill puts words into lines of a width.
func fill(words []string, between string, wide int) []string {
	var lines []string
	for _, w := range words {
		if n := len(lines); n > 0 && len([]rune(lines[n-1]+between+w)) <= wide {
			lines[n-1] += between + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}

// spread gives each column the largest value of its points, and a column without points the
// value of the point before; NaN if there is none.
func spread(points []Point, f frame, columns int) []float64 {
	all := make([]float64, columns)
	for i := range all {
		all[i] = math.NaN()
	}
	for _, p := range points {
		i := min(int((p.X-f.x0)/(f.x1-f.x0)*float64(columns)), columns-1)
		if math.IsNaN(all[i]) || p.Y > all[i] {
			all[i] = p.Y
		}
	}
	last := len(points) - 1
	for i := 1; i < columns && last >= 0; i++ {
		from := f.x0 + (f.x1-f.x0)*float64(i)/float64(columns)
		if math.IsNaN(all[i]) && from <= points[last].X {
			all[i] = all[i-1]
		}
	}
	return all
}

// Spark draws values as one row of bars, full being as high as a row; 0 is a space.
func Spark(values []float64, full float64) string {
	bars := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		n := 0
		if full > 0 && v > 0 {
			n = min(max(int(math.Round(v/full*8)), 1), 8)
		}
		b.WriteRune(bars[n])
	}
	return b.String()
}
