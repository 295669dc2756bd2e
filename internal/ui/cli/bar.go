package cli

import "strings"

// Bar draws a share, from 0 to 1, in a width of columns, to the eighth of a column. Any share
// above 0 is visible.
func Bar(share float64, width int) string {
	eighths := int(min(max(share, 0), 1)*float64(8*width) + 0.5)
	if share > 0 {
		eighths = max(eighths, 1)
	}
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}
