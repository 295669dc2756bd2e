package debian

import (
	"cmp"
	"strings"
)

// Compare orders two version strings as dpkg does (deb-version(7)): it returns
// a negative number, zero or a positive one. Malformed versions are not refused;
// they get a place, too.
func Compare(a, b string) int {
	ea, ua, ra := splitVersion(a)
	eb, ub, rb := splitVersion(b)
	return cmp.Or(compareDigits(ea, eb), comparePart(ua, ub), comparePart(ra, rb))
}

func splitVersion(v string) (epoch, upstream, revision string) {
	epoch, upstream, ok := strings.Cut(v, ":")
	if !ok {
		epoch, upstream = "", v
	}
	if i := strings.LastIndexByte(upstream, '-'); i >= 0 {
		upstream, revision = upstream[:i], upstream[i+1:]
	}
	return epoch, upstream, revision
}

// comparePart compares by turns a run of non-digits and a run of digits.
func comparePart(a, b string) int {
	for a != "" || b != "" {
		na, nb := nonDigits(a), nonDigits(b)
		if c := compareNonDigits(a[:na], b[:nb]); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
		da, db := digits(a), digits(b)
		if c := compareDigits(a[:da], b[:db]); c != 0 {
			return c
		}
		a, b = a[da:], b[db:]
	}
	return 0
}

func compareNonDigits(a, b string) int {
	for i := 0; i < len(a) || i < len(b); i++ {
		if c := cmp.Compare(weight(a, i), weight(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

// weight sorts a tilde before the end, the end before letters, and letters
// before everything else.
func weight(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case s[i] >= 'A' && s[i] <= 'Z', s[i] >= 'a' && s[i] <= 'z':
		return int(s[i])
	default:
		return int(s[i]) + 256
	}
}

// compareDigits compares decimal numbers of any length.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func nonDigits(s string) int {
	if i := strings.IndexAny(s, "0123456789"); i >= 0 {
		return i
	}
	return len(s)
}

func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
