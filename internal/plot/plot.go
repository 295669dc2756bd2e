package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// A Point is one value of a line. X must not fall from one to the next.
type Point struct{ X, Y float64 }

// A Line is a named row of points.
type Line struct {
	Name   string
	Points []Point
}

// A Chart is one panel: lines over a common X, with a level that is drawn across.
type Chart struct {
	Title, Note string
	Lines       []Line
	Level       float64 // of the limit; 0 for none
	LevelName   string
	// From and To shade the part of X that counts; equal for none.
	From, To float64
	XUnit    string
	// Format writes a value of Y.
	Format func(float64) string
}

const (
	width, panel              = 760.0, 220.0
	left, right, above, below = 78.0, 28.0, 40.0, 30.0
	// headroom above the level: a line that runs far beyond it is cut off there, with
	// its highest value written beside it, so that the level's own region is seen.
	headroom = 3.0
)

var colours = []string{"#d97706", "#2563eb", "#111827", "#059669"}

// Draw writes the charts one below the other as one SVG document.
func Draw(w io.Writer, title string, charts []Chart) error {
	var b strings.Builder
	top := begin(&b, title, float64(len(charts))*panel)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(0 %g)">`+"\n", top+float64(i)*panel)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// begin opens a document that has room for panels of a height beneath its title, and
// returns where they begin.
func begin(b *strings.Builder, title string, panels float64) (top float64) {
	lines := wrap(title, titleRunes)
	top = 16 + 18*float64(len(lines))
	height := top + panels
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	for i, line := range lines {
		fmt.Fprintf(b, `<text x="12" y="%d" font-size="13" font-weight="bold">%s</text>`+"\n", 22+18*i, html.EscapeString(line))
	}
	return top
}

// titleRunes is about what fits across the picture.
const titleRunes = 96

// wrap breaks a title between its parts, which " · " separates.
func wrap(title string, most int) []string {
	var lines []string
	for part := range strings.SplitSeq(title, " · ") {
		if n := len(lines); n > 0 && len([]rune(lines[n-1]+part))+3 <= most {
			lines[n-1] += " · " + part
			continue
		}
		lines = append(lines, part)
	}
	return lines
}

// A frame takes values to places on the panel.
type frame struct{ x0, x1, top float64 }

func (f frame) x(v float64) float64 {
	return left + (v-f.x0)/(f.x1-f.x0)*(width-left-right)
}

func (f frame) y(v float64) float64 {
	v = min(max(v, 0), f.top)
	return panel - below - v/f.top*(panel-above-below)
}

func (c Chart) draw(b *strings.Builder) {
	f, highest := c.frame()
	format := c.Format
	if format == nil {
		format = func(v float64) string { return fmt.Sprintf("%.4g", v) }
	}
	fmt.Fprintf(b, `<text x="%g" y="14" font-weight="bold">%s</text><text x="%g" y="14" text-anchor="end" fill="#374151">%s</text>`+"\n",
		left, html.EscapeString(c.Title), width-right, html.EscapeString(c.Note))
	if c.To > c.From {
		fmt.Fprintf(b, `<rect x="%.1f" y="%g" width="%.1f" height="%g" fill="#f3f4f6"/>`+"\n", f.x(c.From), above, f.x(c.To)-f.x(c.From), panel-above-below)
	}
	for _, v := range ticks(0, f.top, 4) {
		fmt.Fprintf(b, `<path d="M%g %.1fH%g" stroke="#e5e7eb"/><text x="%g" y="%.1f" text-anchor="end" fill="#374151">%s</text>`+"\n",
			left, f.y(v), width-right, left-6, f.y(v)+4, html.EscapeString(format(v)))
	}
	for _, v := range ticks(f.x0, f.x1, 8) {
		fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle" fill="#374151">%.4g %s</text>`+"\n", f.x(v), panel-below+16, v, html.EscapeString(c.XUnit))
	}
	c.drawLines(b, f, format, highest)
	if c.Level > 0 {
		fmt.Fprintf(b, `<path d="M%g %.1fH%g" stroke="#dc2626" stroke-width="1.5" stroke-dasharray="6 4"/>`+"\n", left, f.y(c.Level), width-right)
	}
}

func (c Chart) drawLines(b *strings.Builder, f frame, format func(float64) string, highest []float64) {
	x := left
	legend := func(name, colour, dash string) {
		fmt.Fprintf(b, `<path d="M%.1f 28h18" stroke="%s" stroke-width="2"%s/><text x="%.1f" y="32">%s</text>`+"\n", x, colour, dash, x+23, html.EscapeString(name))
		x += 40 + 6.2*float64(len([]rune(name)))
	}
	for i, l := range c.Lines {
		colour := colours[i%len(colours)]
		name := l.Name
		if highest[i] > f.top {
			name += " (up to " + format(highest[i]) + ")"
		}
		legend(name, colour, "")
		if len(l.Points) == 0 {
			continue
		}
		var path strings.Builder
		for n, p := range l.Points {
			verb := "L"
			if n == 0 {
				verb = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, f.x(p.X), f.y(p.Y))
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round"/>`+"\n", path.String(), colour)
	}
	if c.Level > 0 {
		legend(c.LevelName, "#dc2626", ` stroke-dasharray="6 4"`)
	}
}

// frame chooses the axes, and finds each line's highest value.
func (c Chart) frame() (f frame, highest []float64) {
	f = frame{x0: math.Inf(1), x1: math.Inf(-1)}
	top := c.Level
	for _, l := range c.Lines {
		most := 0.0
		for _, p := range l.Points {
			f.x0, f.x1, most = min(f.x0, p.X), max(f.x1, p.X), max(most, p.Y)
		}
		highest, top = append(highest, most), max(top, most)
	}
	if c.Level > 0 {
		top = min(top, headroom*c.Level)
	}
	if !(f.x1 > f.x0) { // nothing to show, or one moment
		f.x0, f.x1 = 0, 1
	}
	if f.top = top * 1.08; f.top <= 0 {
		f.top = 1
	}
	return f, highest
}

// ticks returns about n round values between low and high.
func ticks(low, high float64, n int) []float64 {
	raw := (high - low) / float64(n)
	if raw <= 0 || math.IsInf(raw, 0) || math.IsNaN(raw) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if step*m >= raw {
			step *= m
			break
		}
	}
	var at []float64
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		at = append(at, i*step)
	}
	return at
}
