package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func draw(t *testing.T, charts ...Chart) string {
	t.Helper()
	var b bytes.Buffer
	if err := Draw(&b, "a <title> & more", charts); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	return b.String()
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
	}
	if s := string(svg); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Errorf("a place is no number:\n%s", s)
	}
}

func TestDraw(t *testing.T) {
	s := draw(t, Chart{
		Title: "direct <write>", Level: 10, LevelName: "limit", From: 1, To: 3, FromName: "what counts", XUnit: "s",
		Lines:  []Line{{Name: "disk", Points: []Point{{0, 9}, {1, 10}, {3, 11}}}, {Name: "writer", Points: []Point{{0, 9}, {3, 900}}}},
		Format: func(v float64) string { return fmt.Sprintf("%.0f MB/s", v) },
	})
	for _, want := range []string{"direct &lt;write&gt;", "a &lt;title&gt; &amp; more", "writer (▲ up to 900 MB/s)", ">limit<", ">what counts<", "stroke-dasharray"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing in\n%s", want, s)
		}
	}
}

// Each stretch that runs beyond the top has one mark, and what stays below has none.
func TestCutsAreMarked(t *testing.T) {
	marks := func(y ...float64) int {
		var points []Point
		for x, v := range y {
			points = append(points, Point{float64(x), v})
		}
		return strings.Count(draw(t, Chart{Level: 10, LevelName: "limit", Lines: []Line{{Name: "writer", Points: points}}}), `class="cut"`)
	}
	for want, y := range map[int][]float64{0: {9, 29, 11, 9}, 1: {9, 50, 200, 90, 9}, 2: {200, 9, 9, 200}} {
		if got := marks(y...); got != want {
			t.Errorf("%v: %d marks, want %d", y, got, want)
		}
	}
}

func TestDrawNothing(t *testing.T) {
	draw(t)
	draw(t, Chart{}, Chart{Lines: []Line{{Name: "empty"}}}, Chart{Level: 5, Lines: []Line{{Name: "one", Points: []Point{{2, 2}}}}}, Chart{Lines: []Line{{Name: "zero", Points: []Point{{0, 0}, {1, 0}}}}})
}

func TestWrap(t *testing.T) {
	for title, want := range map[string][]string{
		"":                         {""},
		"a · b":                    {"a · b"},
		"one · two":                {"one · two"},
		"one · three":              {"one", "three"},
		"overlong one · b · c · d": {"overlong one", "b · c · d"},
	} {
		if got := wrap(title, 9); !slices.Equal(got, want) {
			t.Errorf("wrap(%q) = %q, want %q", title, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	if got := ticks(0, 10, 4); !slices.Equal(got, []float64{0, 5, 10}) {
		t.Errorf("ticks = %v", got)
	}
	for range 3 {
		for _, bad := range [][2]float64{{0, 0}, {1, 0}, {0, math.Inf(1)}, {math.NaN(), 1}} {
			if got := ticks(bad[0], bad[1], 4); got != nil {
				t.Errorf("ticks(%v) = %v", bad, got)
			}
		}
	}
}

// paths are the attributes d of a document's paths with a fill or stroke.
func paths(s, of string) []string {
	var all []string
	for line := range strings.Lines(s) {
		if strings.Contains(line, of) && strings.HasPrefix(line, `<path d="M`) {
			all = append(all, line)
		}
	}
	return all
}

func TestLogAxisGivesEachDecadeTheSame(t *testing.T) {
	c := Chart{Log: true, Lines: []Line{{Name: "x", Points: []Point{{0, 0}, {1, 1}, {2, 10}, {3, 100}, {4, 1000}}}}}
	f, _ := c.frame()
	if first, second := f.y(1)-f.y(10), f.y(10)-f.y(100); math.Abs(first-second) > 1e-9 || first <= 0 {
		t.Errorf("a decade is %g, and then %g", first, second)
	}
	if f.y(0) != f.y(f.bottom) {
		t.Error("0 is not at the bottom")
	}
	if got := f.ticks(); !slices.Equal(got, []float64{1, 10, 100, 1000}) {
		t.Errorf("ticks %v", got)
	}
	draw(t, c, Chart{Log: true}, Chart{Log: true, Lines: []Line{{Name: "zero", Points: []Point{{0, 0}}}, {Name: "same", Points: []Point{{0, 7}, {1, 7}}}}})
	narrow, _ := Chart{Log: true, Lines: []Line{{Points: []Point{{0, 30}, {1, 200}}}}}.frame()
	if got := narrow.ticks(); !slices.Equal(got, []float64{20, 50, 100, 200}) {
		t.Errorf("ticks %v", got)
	}
}

func TestAreasStandOnEachOther(t *testing.T) {
	c := Chart{Stacked: true, Lines: []Line{{Name: "low", Colour: "#111111", Points: []Point{{1, 2}, {2, 4}}}, {Name: "high", Colour: "#222222", Points: []Point{{1, 3}, {2, 1}}}}}
	f, _ := c.frame()
	if f.x0 != 0 || f.top < 5 || f.top > 5.5 {
		t.Errorf("frame %+v", f)
	}
	s := draw(t, c)
	low, high := paths(s, `fill="#111111"`), paths(s, `fill="#222222"`)
	if len(low) != 1 || len(high) != 1 {
		t.Fatalf("areas %q, %q", low, high)
	}
	f.height, f.above = panel, above
	if edge := fmt.Sprintf("L%.1f %.1f", f.x(1), f.y(2)); !strings.Contains(low[0], edge) || !strings.Contains(high[0], edge) {
		t.Errorf("%q is no edge of both:\n%s%s", edge, low[0], high[0])
	}
}

func TestLegendTakesRows(t *testing.T) {
	var c Chart
	for range 12 {
		c.Lines = append(c.Lines, Line{Name: "dirty throttling", Points: []Point{{0, 1}, {1, 2}}})
	}
	f, highest := c.frame()
	l := c.legend(f, highest)
	if l.rows != 3 || strings.Contains(l.svg, fmt.Sprintf(`<path d="M%g`, width)) {
		t.Errorf("%d rows:\n%s", l.rows, l.svg)
	}
	s := draw(t, c, c)
	if want := fmt.Sprintf(`height="%g"`, 34+2*(panel+2*legendRow)); !strings.Contains(s, want) {
		t.Errorf("the picture is not %s:\n%s", want, s[:200])
	}
}

func TestText(t *testing.T) {
	c := Chart{Title: "title", Note: "note", XUnit: "GiB", Log: true, Format: func(v float64) string { return fmt.Sprintf("%g µs", v) },
		Lines: []Line{{Name: "a", Points: []Point{{1, 10}, {2, 10}, {3, 10}}}, {Name: "b", Points: []Point{{1, 10}, {2, 100}, {3, 1000}}}, {Name: "c", Faint: true}}}
	want := strings.TrimLeft(`
title · note
          ○ a   ● b   · c
 1000 µs ┤           ●
  500 µs ┤
  100 µs ┤      ●●●●●
   20 µs ┤●●●●●●○○○○○○
          1      3 GiB
`, "\n")
	got := Text(c, 22, 4)
	if squeeze(got) != squeeze(want) {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	for line := range strings.Lines(Text(c, 80, 10)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d wide: %s", n, line)
		}
	}
	for _, c := range []Chart{{}, {Lines: []Line{{}}}, {Log: true}, {Level: 3, LevelName: "l"}} {
		_ = Text(c, 20, 3)
	}
}

// squeeze joins runs of spaces.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// Names in a chart are others': they begin no line of it.
func TestTextOfOddNames(t *testing.T) {
	odd := "x\nweir: all is held"
	c := Chart{Title: odd, Note: odd, LevelName: odd, Level: 1, XTo: 1, Lines: []Line{{Name: odd, Points: []Point{{0, 1}, {1, 2}}}}, Format: func(v float64) string { return fmt.Sprint(v) }}
	if got := Text(c, 80, 4); strings.Contains(got, "\nweir") || strings.Count(got, `x\nweir: all is held`) != 4 {
		t.Errorf("%s", got)
	}
}

func TestSpark(t *testing.T) {
	if got := Spark([]float64{0, 0.01, 0.5, 1, 2}, 1); got != " ▁▄██" {
		t.Errorf("%q", got)
	}
	if got := Spark([]float64{1}, 0); got != " " {
		t.Errorf("of nothing: %q", got)
	}
}
