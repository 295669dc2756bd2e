package plain

import "unicode"

// wide are the characters that take two columns of a terminal: those of East Asia that are wide or full-width
// (Unicode's EastAsianWidth.txt), and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x23e9, Hi: 0x23ec, Stride: 1}, {Lo: 0x23f0, Hi: 0x23f3, Stride: 3},
		{Lo: 0x2614, Hi: 0x2615, Stride: 1}, {Lo: 0x2648, Hi: 0x2653, Stride: 1}, {Lo: 0x26a1, Hi: 0x26a1, Stride: 1}, {Lo: 0x2705, Hi: 0x2705, Stride: 1},
		{Lo: 0x274c, Hi: 0x274c, Stride: 1}, {Lo: 0x2b50, Hi: 0x2b55, Stride: 5}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0x33ff, Stride: 1},
		{Lo: 0x3400, Hi: 0x4dbf, Stride: 1}, {Lo: 0x4e00, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe0, Hi: 0x1b2ff, Stride: 1}, {Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x1fa70, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// Width is how many columns a line takes on a terminal.
func Width(line string) (columns int) {
	for i := 0; ; i++ { // most lines are ASCII
		if i == len(line) {
			return i
		}
		if line[i] >= 0x80 {
			break
		}
	}
	for _, r := range line {
		columns += widthOf(r)
	}
	return columns
}

func widthOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0 // it is put onto the one before
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Cut is the beginning of a line, with an ellipsis if there is no room for all of it in so many columns.
func Cut(line string, columns int) string {
	if len(line) <= columns || Width(line) <= columns {
		return line
	}
	const dots = "…"
	room := columns - 1
	if columns <= 1 {
		room = max(columns, 0)
	}
	end := 0
	for i, r := range line {
		if room -= widthOf(r); room < 0 {
			break
		}
		end = i + len(string(r))
	}
	if columns <= 1 {
		return line[:end]
	}
	return line[:end] + dots
}
