package plot

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func drawBars(t *testing.T, all ...Histogram) string {
	t.Helper()
	var b bytes.Buffer
	if err := DrawHistograms(&b, "a <title> & more", all); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	return b.String()
}

func TestDrawHistograms(t *testing.T) {
	s := drawBars(t, Histogram{
		Title: "write <b>", Note: "p50 & p99", Parts: []string{"work", "wait & see", "nothing"},
		Columns: []Column{{1, 2, 1000, []float64{5, 0, 0}}, {2, 4, 0, nil}, {4, 8, 1, []float64{1, 3, 0}}},
		Marks:   []Mark{{"p50", 1.5}, {"p99", 900}},
		Sums:    []Sum{{"all", "9 s", []float64{6, 3, 0}}},
	})
	for _, want := range []string{"write &lt;b&gt;", "p50 &amp; p99", ">wait &amp; see<", ">67 %<", ">33 %<", ">9 s<", ">1k<"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing in\n%s", want, s)
		}
	}
	if strings.Contains(s, ">nothing<") {
		t.Error("the legend names a part that there is nothing of")
	}
	// Two of three columns have something: a column each, and of their parts one and two;
	// the sum has two.
	if got := strings.Count(s, `fill="#475569"`); got != 2 {
		t.Errorf("%d columns are drawn, want 2", got)
	}
	if first, second := strings.Count(s, partColours[0]), strings.Count(s, partColours[1]); first != 2+1+1 || second != 1+1+1 {
		t.Errorf("the parts are drawn %d and %d times, with the legend", first, second)
	}
}

// All parts that there can be are told apart.
func TestPartColours(t *testing.T) {
	for i, c := range partColours {
		if c == "" || slices.Contains(partColours[:i], c) {
			t.Errorf("part %d has colour %q, which says nothing or is another's", i, c)
		}
	}
}

func TestDrawNoHistogram(t *testing.T) {
	drawBars(t)
	drawBars(t, Histogram{}, Histogram{Columns: []Column{{1, 2, 0, nil}}}, Histogram{Sums: []Sum{{Name: "empty"}, {Parts: []float64{0, 0}}}},
		Histogram{Columns: []Column{{1, 1.125, 1, []float64{0, 0}}}})
}

func TestInkOn(t *testing.T) {
	for colour, want := range map[string]string{"#ffffff": "#111827", "#000000": "#fff", "#facc15": "#111827", "#1d4ed8": "#fff", "red": "#fff"} {
		if got := inkOn(colour); got != want {
			t.Errorf("inkOn(%s) = %s, want %s", colour, got, want)
		}
	}
}
