package blkdev

import (
	"strings"

	"github.com/weir-io/weir/internal/linux/mountinfo"
)

// splitOptions splits a list of mount options at its commas. The kernel escapes a comma in a
// value (\054); if it prints options as they were given (overlayfs before 6.7), a backslash
// precedes the comma.
func splitOptions(options string) []string {
	var all []string
	from := 0
	for i := 0; i < len(options); i++ {
		switch options[i] {
		case '\\':
			if i+1 < len(options) && options[i+1] == ',' {
				i++
			}
		case ',':
			all = append(all, options[from:i])
			from = i + 1
		}
	}
	return append(all, options[from:])
}

// option returns the value of key in a comma-separated list as mountinfo writes it,
// unescaped.
func option(options, key string) (string, bool) {
	for _, o := range splitOptions(options) {
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
	data  []string // layers that have data only, of files that a layer above names (composefs)
}

// parseOverlay reads the options of an overlay. lowerdir is a list with colons, in
// which a colon of a name has a backslash before it, and layers for data only are behind
// "::". From 6.7 on each layer can be a lowerdir+ of its own, and each layer for data a
// datadir+, without such escapes (overlayfs.rst, "Multiple lower layers", "Data-only
// lower layers").
func parseOverlay(options string) overlayDirs {
	var d overlayDirs
	for _, o := range splitOptions(options) {
		switch k, v, _ := strings.Cut(o, "="); k {
		case "upperdir":
			if d.upper == "" {
				d.upper = mountinfo.Unescape(v)
			}
		case "lowerdir":
			lower, data := splitLower(mountinfo.Unescape(v))
			d.lower, d.data = append(d.lower, lower...), append(d.data, data...)
		case "lowerdir+":
			d.lower = append(d.lower, mountinfo.Unescape(v))
		case "datadir+":
			d.data = append(d.data, mountinfo.Unescape(v))
		}
	}
	return d
}

// splitLower splits at colons that have no backslash before them, and drops the backslashes.
// Layers for data only come each after "::".
func splitLower(s string) (lower, data []string) {
	var dir strings.Builder
	into, last := &lower, byte(0)
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			dir.WriteByte(s[i])
			last = 0
			continue
		case s[i] == ':' && last == ':':
			into = &data
		case s[i] == ':':
			if dir.Len() > 0 {
				*into = append(*into, dir.String())
			}
			dir.Reset()
		default:
			dir.WriteByte(s[i])
		}
		last = s[i]
	}
	if dir.Len() > 0 {
		*into = append(*into, dir.String())
	}
	return lower, data
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
