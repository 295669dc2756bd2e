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
		Title: "direct <write>", Level: 10, LevelName: "limit", From: 1, To: 3, XUnit: "s",
		Lines:  []Line{{"disk", []Point{{0, 9}, {1, 10}, {3, 11}}}, {"writer", []Point{{0, 9}, {3, 900}}}},
		Format: func(v float64) string { return fmt.Sprintf("%.0f MB/s", v) },
	})
	for _, want := range []string{"direct &lt;write&gt;", "a &lt;title&gt; &amp; more", "writer (up to 900 MB/s)", ">limit<", "stroke-dasharray"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing in\n%s", want, s)
		}
	}
}

func TestDrawNothing(t *testing.T) {
	draw(t)
	draw(t, Chart{}, Chart{Lines: []Line{{Name: "empty"}}}, Chart{Level: 5, Lines: []Line{{"one", []Point{{2, 2}}}}}, Chart{Lines: []Line{{"zero", []Point{{0, 0}, {1, 0}}}}})
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
