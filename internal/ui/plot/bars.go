package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// A Histogram is one panel: how many values lie where, over a logarithmic X; beneath each
// column what its values are made of; and beneath those what sums of them are made of.
type Histogram struct {
	Title, Note string
	Counted     string   // what Count counts: "calls"
	Columns     []Column // by X
	Marks       []Mark
	Parts       []string // names, by place; a part has the same colour in all panels
	Sums        []Sum
	// Format writes a value of X.
	Format func(float64) string
}

// A Column is the values between two, both more than 0.
type Column struct {
	From, To float64
	Count    float64
	Parts    []float64 // by place
}

// A Mark names a value of X.
type Mark struct {
	Name string
	X    float64
}

// A Sum is a bar that is all of something.
type Sum struct {
	Name, Note string
	Parts      []float64 // by place
}

// Places on a panel, from its top.
const (
	histogramPanel             = 380.0
	countsTop, countsFloor     = 44.0, 144.0
	partsTop, partsFloor       = 164.0, 244.0
	sumsTop, sumHeight, sumGap = 276.0, 16.0, 8.0
	legendTop                  = 332.0
	legendColumns              = 4
)

// PartsMost is how many parts a histogram can have.
const PartsMost = 13

// partColours differ in hue for parts that usually lie beside each other.
var partColours = [PartsMost]string{"#9ca3af", "#d6d3d1", "#dc2626", "#fb923c", "#facc15", "#7c3aed", "#38bdf8", "#1d4ed8", "#059669", "#a5f3fc", "#84cc16", "#f9a8d4", "#292524"}

// PartColour is the colour of a part by its place, the same in every picture.
func PartColour(place int) string { return partColours[place] }

// DrawHistograms writes them one below the other as one SVG document.
func DrawHistograms(w io.Writer, title string, all []Histogram) error {
	var b strings.Builder
	top := begin(&b, title, float64(len(all))*histogramPanel)
	for i, h := range all {
		fmt.Fprintf(&b, `<g transform="translate(0 %g)">`+"\n", top+float64(i)*histogramPanel)
		h.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// A logFrame takes values of X to places on the panel.
type logFrame struct{ low, high float64 }

func (f logFrame) x(v float64) float64 {
	v = min(max(v, f.low), f.high)
	return left + math.Log(v/f.low)/math.Log(f.high/f.low)*(width-left-right)
}

func (h Histogram) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<text x="%g" y="14" font-weight="bold">%s</text><text x="%g" y="14" text-anchor="end" fill="#374151">%s</text>`+"\n",
		left, html.EscapeString(h.Title), width-right, html.EscapeString(h.Note))
	if len(h.Columns) > 0 {
		f := logFrame{h.Columns[0].From, h.Columns[len(h.Columns)-1].To}
		h.drawCounts(b, f)
		h.drawParts(b, f)
		h.drawAxis(b, f)
	}
	for i, s := range h.Sums {
		h.drawSum(b, s, sumsTop+float64(i)*(sumHeight+sumGap))
	}
	h.drawLegend(b)
}

// drawCounts draws the columns with logarithmic heights: slow operations are rare, and must be
// visible.
func (h Histogram) drawCounts(b *strings.Builder, f logFrame) {
	most := 1.0
	for _, c := range h.Columns {
		most = max(most, c.Count)
	}
	top := math.Ceil(math.Log10(most) + 1e-9)
	// One has a column of its own, so the floor is below it.
	y := func(n float64) float64 {
		return countsFloor - (math.Log10(n)+0.5)/(max(top, 1)+0.5)*(countsFloor-countsTop)
	}
	fmt.Fprintf(b, `<text transform="rotate(-90 12 %g)" x="12" y="%g" text-anchor="middle" fill="#374151">%s</text>`+"\n",
		(countsTop+countsFloor)/2, (countsTop+countsFloor)/2, html.EscapeString(h.Counted))
	for decade := 0.0; decade <= max(top, 1); decade++ {
		n := math.Pow(10, decade)
		fmt.Fprintf(b, `<path d="M%g %.1fH%g" stroke="#e5e7eb"/><text x="%g" y="%.1f" text-anchor="end" fill="#374151">%s</text>`+"\n",
			left, y(n), width-right, left-6, y(n)+4, decadeText(decade))
	}
	for _, c := range h.Columns {
		if c.Count > 0 {
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#475569"/>`+"\n", f.x(c.From), y(c.Count), columnWidth(f, c), countsFloor-y(c.Count))
		}
	}
	for i, m := range h.Marks {
		anchor := "middle"
		if f.x(m.X) > width-right-24 {
			anchor = "end"
		}
		// Names in two lines: the marks may be close to each other.
		fmt.Fprintf(b, `<path d="M%.1f %gV%g" stroke="#dc2626" stroke-dasharray="3 3"/><text x="%.1f" y="%g" text-anchor="%s" fill="#dc2626">%s</text>`+"\n",
			f.x(m.X), countsTop-4, countsFloor, f.x(m.X), countsTop-8-10*float64(i%2), anchor, html.EscapeString(m.Name))
	}
}

// decadeText writes a power of ten: "100", "1k", "10M".
func decadeText(decade float64) string {
	units := []string{"", "k", "M", "G", "T", "P"}
	unit := min(int(decade)/3, len(units)-1)
	return fmt.Sprintf("%.0f%s", math.Pow(10, decade-3*float64(unit)), units[unit])
}

func columnWidth(f logFrame, c Column) float64 { return max(f.x(c.To)-f.x(c.From)-0.6, 0.8) }

// drawParts draws what the values of each column are made of.
func (h Histogram) drawParts(b *strings.Builder, f logFrame) {
	fmt.Fprintf(b, `<text x="%g" y="%g" fill="#374151">share of the time</text>`+"\n", left, partsTop-6)
	fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="%g" fill="#f9fafb"/>`+"\n", left, partsTop, width-left-right, partsFloor-partsTop)
	for _, share := range []float64{0, 50, 100} {
		y := partsFloor - share/100*(partsFloor-partsTop)
		fmt.Fprintf(b, `<text x="%g" y="%.1f" text-anchor="end" fill="#374151">%.0f %%</text>`+"\n", left-6, y+4, share)
	}
	for _, c := range h.Columns {
		all, y := total(c.Parts), partsFloor
		for i, v := range c.Parts {
			if v > 0 {
				height := v / all * (partsFloor - partsTop)
				y -= height
				fmt.Fprintf(b, `<rect x="%.1f" y="%.2f" width="%.1f" height="%.2f" fill="%s"/>`+"\n", f.x(c.From), y, columnWidth(f, c), height, partColours[i])
			}
		}
	}
}

// drawAxis writes round values of X beneath.
func (h Histogram) drawAxis(b *strings.Builder, f logFrame) {
	steps := []float64{1, 2, 5}
	if f.high/f.low > 1e4 {
		steps = steps[:1]
	}
	for decade := math.Pow(10, math.Floor(math.Log10(f.low))); decade <= f.high; decade *= 10 {
		for _, step := range steps {
			if v := step * decade; v >= f.low && v <= f.high {
				fmt.Fprintf(b, `<path d="M%.1f %gv5" stroke="#6b7280"/><text x="%.1f" y="%g" text-anchor="middle" fill="#374151">%s</text>`+"\n",
					f.x(v), partsFloor, f.x(v), partsFloor+17, html.EscapeString(h.write(v)))
			}
		}
	}
}

func (h Histogram) write(v float64) string {
	if h.Format == nil {
		return fmt.Sprintf("%.4g", v)
	}
	return h.Format(v)
}

// drawSum draws one bar from side to side, with the shares that there is room for.
func (h Histogram) drawSum(b *strings.Builder, s Sum, y float64) {
	const note = 84.0
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="end" fill="#374151">%s</text><text x="%g" y="%g" text-anchor="end" fill="#374151">%s</text>`+"\n",
		left-6, y+12, html.EscapeString(s.Name), width-right, y+12, html.EscapeString(s.Note))
	all, x := total(s.Parts), left
	for i, v := range s.Parts {
		if v <= 0 {
			continue
		}
		wide := v / all * (width - left - right - note)
		fmt.Fprintf(b, `<rect x="%.1f" y="%g" width="%.1f" height="%g" fill="%s"/>`+"\n", x, y, wide, sumHeight, partColours[i])
		if wide > 36 {
			fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle" font-size="10" fill="%s">%.0f %%</text>`+"\n", x+wide/2, y+12, inkOn(partColours[i]), 100*v/all)
		}
		x += wide
	}
}

// drawLegend names the parts that there is anything of.
func (h Histogram) drawLegend(b *strings.Builder) {
	n := 0
	for i, name := range h.Parts {
		seen := false
		for _, s := range h.Sums {
			seen = seen || i < len(s.Parts) && s.Parts[i] > 0
		}
		if !seen {
			continue
		}
		x, y := left+float64(n%legendColumns)*(width-left-right)/legendColumns, legendTop+float64(n/legendColumns)*16
		fmt.Fprintf(b, `<rect x="%.1f" y="%g" width="11" height="11" fill="%s"/><text x="%.1f" y="%g">%s</text>`+"\n", x, y, partColours[i], x+16, y+10, html.EscapeString(name))
		n++
	}
}

// inkOn is a colour that is read on another, "#rrggbb".
func inkOn(colour string) string {
	var red, green, blue int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &red, &green, &blue); err == nil && 3*red+6*green+blue > 1400 {
		return "#111827"
	}
	return "#fff"
}

func total(parts []float64) (sum float64) {
	for _, v := range parts {
		sum += v
	}
	return sum
}
