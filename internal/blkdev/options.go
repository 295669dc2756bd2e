package blkdev

import (
	"strings"

	"github.com/weir-io/weir/internal/mountinfo"
)

// option returns the value of key in a comma-separated list as mountinfo writes it,
// unescaped. A value that holds a comma is escaped there (\054).
func option(options, key string) (string, bool) {
	for o := range strings.SplitSeq(options, ",") {
		if k, v, ok := strings.Cut(o, "="); ok && k == key {
			return mountinfo.Unescape(v), true
		}
	}
	return "", false
}

// overlayDirs are the directories of an overlay, from its mount options.
type overlayDirs struct {
	upper string   // empty for an overlay that only reads
	lower []string // the topmost first
}

// parseOverlay reads the options of an overlay. lowerdir is a list with colons, in
// which a colon of a name has a backslash before it; from 6.7 on each layer can be a
// lowerdir+ of its own, without such escapes (overlayfs.rst, "Multiple lower layers").
func parseOverlay(options string) overlayDirs {
	var d overlayDirs
	d.upper, _ = option(options, "upperdir")
	for o := range strings.SplitSeq(options, ",") {
		switch k, v, _ := strings.Cut(o, "="); k {
		case "lowerdir":
			d.lower = append(d.lower, splitLower(mountinfo.Unescape(v))...)
		case "lowerdir+":
			d.lower = append(d.lower, mountinfo.Unescape(v))
		}
	}
	return d
}

// splitLower splits at colons that have no backslash before them, drops the
// backslashes, and stops at "::", behind which are layers for data only.
func splitLower(s string) []string {
	var dirs []string
	var dir strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			dir.WriteByte(s[i])
		case s[i] == ':':
			if dir.Len() == 0 {
				return dirs
			}
			dirs = append(dirs, dir.String())
			dir.Reset()
		default:
			dir.WriteByte(s[i])
		}
	}
	if dir.Len() > 0 {
		dirs = append(dirs, dir.String())
	}
	return dirs
}

// withoutBackslashes takes away the backslashes that protect characters from the
// parser of mount options.
func withoutBackslashes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
