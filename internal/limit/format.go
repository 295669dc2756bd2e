package limit

import (
	"math"
	"strconv"
	"strings"
)

type unit struct {
	size uint64
	name string
}

var (
	decimalBytes = []unit{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}
	binaryBytes  = []unit{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}}
)

// Format spells a rate of the given key exactly, so that it can be read back:
// "10 MB/s", "1.5 GB/s", "10 MiB/s", "1234567 B/s", "500 ops/s", "max", or "-" for unset.
func (r Rate) Format(k Key) string {
	n, ok := r.Number()
	switch {
	case r.IsUnlimited():
		return "max"
	case !ok:
		return "-"
	case k.IsOps():
		return strconv.FormatUint(n, 10) + " ops/s"
	}
	for _, units := range [][]unit{decimalBytes, binaryBytes} {
		for i, u := range units {
			if i > 0 && n >= units[i-1].size {
				break
			}
			if s, ok := exactly(n, u.size); ok {
				return s + " " + u.name + "/s"
			}
		}
	}
	return strconv.FormatUint(n, 10) + " B/s"
}

// exactly writes n in units of size with at most two decimals, if that is exact.
func exactly(n, size uint64) (string, bool) {
	if n < size || n > math.MaxUint64/100 || n*100%size != 0 {
		return "", false
	}
	hundredths := n * 100 / size
	s := strconv.FormatUint(hundredths/100, 10)
	if rest := hundredths % 100; rest != 0 {
		s += "." + strings.TrimRight(strconv.FormatUint(100+rest, 10)[1:], "0")
	}
	return s, true
}

// FormatMeasured writes a measured number of bytes (or bytes per second, the caller
// adds "/s") in three significant digits and powers of 1000: "9.93 MB".
func FormatMeasured(bytes float64) string {
	for _, u := range decimalBytes {
		if bytes >= float64(u.size)*0.9995 {
			v := bytes / float64(u.size)
			switch {
			case v >= 99.95:
				return strconv.FormatFloat(v, 'f', 0, 64) + " " + u.name
			case v >= 9.995:
				return strconv.FormatFloat(v, 'f', 1, 64) + " " + u.name
			}
			return strconv.FormatFloat(v, 'f', 2, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(bytes, 'f', 0, 64) + " B"
}

// FormatSize writes a round number of bytes in powers of 1024, "1 GiB" or "64 MiB", and any
// other number as FormatMeasured does.
func FormatSize(bytes uint64) string {
	if bytes != 0 && bytes%(1<<20) == 0 && bytes < 1<<40 {
		if bytes%(1<<30) == 0 {
			return strconv.FormatUint(bytes>>30, 10) + " GiB"
		}
		return strconv.FormatUint(bytes>>20, 10) + " MiB"
	}
	return FormatMeasured(float64(bytes))
}
