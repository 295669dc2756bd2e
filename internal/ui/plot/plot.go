package plot

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// A Point is one value of a line. X must not fall from one to the next.
type Point struct{ X, Y float64 }

// A Line is a named row of points.
type Line struct {
	Name   string
	Points []Point
	Colour string // "#2563eb"; empty: the next one of the usual
	Faint  bool   // thin and dashed: what is there beside the line that it belongs to
}

// A Chart is one panel: lines over a common X, with a level that is drawn across.
type Chart struct {
	Title, Note string
	Lines       []Line
	Level       float64 // of the limit; 0 for none
	LevelName   string
	// From and To shade the part of X that counts; equal for none.
	From, To float64
	FromName string  // what that part is; empty: it is not named
	XTo      float64 // X is from 0 to there at least; 0: as far as the points are
	YTo      float64 // where Y ends; 0: a little above the highest point
	XUnit    string
	// Format writes a value of Y.
	Format func(float64) string
	// Log makes Y logarithmic, from the decade of the lowest point on; points at 0 or below are
	// at the bottom.
	Log bool
	// Stacked draws the lines as areas on top of each other, the first one at the bottom.
	// Their points must have the same X. A point is where its stretch ends; the first
	// stretch begins at 0.
	Stacked bool
}

const (
	width, panel              = 760.0, 220.0
	left, right, above, below = 78.0, 28.0, 40.0, 30.0
	legendRow                 = 16.0
	// headroom above the level: a line that runs far beyond it is cut off there, with
	// its highest value written beside it, so that the level's own region is seen.
	headroom = 3.0
)

var colours = []string{"#d97706", "#2563eb", "#111827", "#059669"}

// Draw writes the charts one below the other as one SVG document.
func Draw(w io.Writer, title string, charts []Chart) error {
	var b strings.Builder
	panels := make([]strings.Builder, len(charts))
	at := make([]float64, len(charts)+1) // each panel's beginning, beneath the title
	for i, c := range charts {
		at[i+1] = at[i] + c.draw(&panels[i])
	}
	top := begin(&b, title, at[len(charts)])
	for i := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %g)">`+"\n%s</g>\n", top+at[i], panels[i].String())
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
	return fill(strings.Split(title, " · "), " · ", most)
}

func (c Chart) format(v float64) string {
	if c.Format == nil {
		return fmt.Sprintf("%.4g", v)
	}
	return c.Format(v)
}

// colour is the one of the chart's i-th line.
func (c Chart) colour(i int) string {
	if own := c.Lines[i].Colour; own != "" {
		return own
	}
	return colours[i%len(colours)]
}

// draw returns the panel's height.
func (c Chart) draw(b *strings.Builder) float64 {
	f, highest := c.frame()
	legend := c.legend(f, highest)
	f.above = above + legendRow*float64(legend.rows-1)
	f.height = panel - above + f.above
	fmt.Fprintf(b, `<text x="%g" y="14" font-weight="bold">%s</text><text x="%g" y="14" text-anchor="end" fill="#374151">%s</text>`+"\n",
		left, html.EscapeString(c.Title), width-right, html.EscapeString(c.Note))
	if c.To > c.From {
		fmt.Fprintf(b, `<rect x="%.1f" y="%g" width="%.1f" height="%g" fill="#f3f4f6"/>`+"\n", f.x(c.From), f.above, f.x(c.To)-f.x(c.From), f.height-f.above-below)
	}
	for _, v := range f.ticks() {
		fmt.Fprintf(b, `<path d="M%g %.1fH%g" stroke="#e5e7eb"/><text x="%g" y="%.1f" text-anchor="end" fill="#374151">%s</text>`+"\n",
			left, f.y(v), width-right, left-6, f.y(v)+4, html.EscapeString(c.format(v)))
	}
	for _, v := range ticks(f.x0, f.x1, 8) {
		fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle" fill="#374151">%.4g %s</text>`+"\n", f.x(v), f.height-below+16, v, html.EscapeString(c.XUnit))
	}
	b.WriteString(legend.svg)
	if c.Stacked {
		c.drawAreas(b, f)
	} else {
		c.drawLines(b, f)
	}
	if c.Level > 0 {
		fmt.Fprintf(b, `<path d="M%g %.1fH%g" stroke="#dc2626" stroke-width="1.5" stroke-dasharray="6 4"/>`+"\n", left, f.y(c.Level), width-right)
	}
	return f.height
}

func (c Chart) drawLines(b *strings.Builder, f frame) {
	for i, l := range c.Lines {
		if len(l.Points) == 0 {
			continue
		}
		drawCuts(b, f, l.Points, c.colour(i))
		var path strings.Builder
		for n, p := range l.Points {
			verb := "L"
			if n == 0 {
				verb = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, f.x(p.X), f.y(p.Y))
		}
		stroke := `stroke-width="1.6"`
		if l.Faint {
			stroke = faint
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" %s stroke-linejoin="round"/>`+"\n", path.String(), c.colour(i), stroke)
	}
}

// drawCuts marks where a line runs beyond the top: at the highest point of each such stretch.
func drawCuts(b *strings.Builder, f frame, points []Point, colour string) {
	highest := Point{Y: f.top}
	for i, p := range points {
		if p.Y > highest.Y {
			highest = p
		}
		if highest.Y > f.top && (p.Y <= f.top || i == len(points)-1) {
			fmt.Fprintf(b, `<path class="cut" d="M%.1f %gl-5 8h10z" fill="%s"/>`+"\n", f.x(highest.X), f.above-9, colour)
			highest = Point{Y: f.top}
		}
	}
}

const faint = `stroke-width="1" stroke-dasharray="3 2"`

// drawAreas draws the lines on top of each other, as steps: a stretch is a stretch.
func (c Chart) drawAreas(b *strings.Builder, f frame) {
	var base []float64
	for i, l := range c.Lines {
		if base == nil {
			base = make([]float64, len(l.Points))
		}
		var up, down strings.Builder
		from := 0.0
		steps := make([]string, 0, len(l.Points))
		for n, p := range l.Points[:min(len(base), len(l.Points))] {
			verb := "L"
			if n == 0 {
				verb = "M"
			}
			fmt.Fprintf(&up, "%s%.1f %.1fL%.1f %.1f", verb, f.x(from), f.y(base[n]+p.Y), f.x(p.X), f.y(base[n]+p.Y))
			steps = append(steps, fmt.Sprintf("L%.1f %.1fL%.1f %.1f", f.x(p.X), f.y(base[n]), f.x(from), f.y(base[n])))
			base[n] += p.Y
			from = p.X
		}
		for n := len(steps) - 1; n >= 0; n-- {
			down.WriteString(steps[n])
		}
		if up.Len() > 0 {
			fmt.Fprintf(b, `<path d="%s%sZ" fill="%s"/>`+"\n", up.String(), down.String(), c.colour(i))
		}
	}
}
