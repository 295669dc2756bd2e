package plain

import (
	"testing"
	"unicode/utf8"
)

// Columns are those that terminals take: two for characters of East Asia and pictures, none for marks.
func TestWidth(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		most  int
		cut   string
	}{
		{"", 0, 0, ""}, {"abc", 3, 3, "abc"}, {"abc", 3, 2, "a…"}, {"abc", 3, 1, "a"}, {"abc", 3, 0, ""}, {"abc", 3, -1, ""},
		{"容器", 4, 4, "容器"}, {"容器", 4, 3, "容…"}, {"容器", 4, 2, "…"}, {"容器", 4, 1, ""},
		{"ｆｕｌｌ", 8, 5, "ｆｕ…"}, {"한글", 4, 3, "한…"}, {"🐳web", 5, 4, "🐳w…"},
		{"e\u0301a", 2, 2, "e\u0301a"}, {"e\u0301ab", 3, 2, "e\u0301…"}, {"–█▏…", 4, 4, "–█▏…"}, {"é", 1, 1, "é"},
	} {
		if got := Width(c.line); got != c.width {
			t.Errorf("%q: %d columns, want %d", c.line, got, c.width)
		}
		if got := Cut(c.line, c.most); got != c.cut {
			t.Errorf("%q in %d: %q, want %q", c.line, c.most, got, c.cut)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("容器e\u0301\xff", 3)
	f.Fuzz(func(t *testing.T, line string, columns int) {
		line = Line(line)
		columns %= 1000
		cut := Cut(line, columns)
		if Width(cut) > max(columns, 0) || !utf8.ValidString(cut) {
			t.Errorf("%q in %d: %q", line, columns, cut)
		}
	})
}
