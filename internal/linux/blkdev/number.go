package blkdev

import (
	"fmt"
	"strconv"
	"strings"
)

// A Number is a block device's number, as the kernel's cgroup files and
// /proc/partitions spell it: MAJOR:MINOR.
type Number struct{ Major, Minor uint32 }

// String returns MAJOR:MINOR.
func (n Number) String() string {
	return strconv.FormatUint(uint64(n.Major), 10) + ":" + strconv.FormatUint(uint64(n.Minor), 10)
}

// ParseNumber reads MAJOR:MINOR in decimal.
func ParseNumber(s string) (Number, error) {
	major, minor, ok := strings.Cut(s, ":")
	if !ok {
		return Number{}, fmt.Errorf("device number %q: not MAJOR:MINOR", s)
	}
	a, errMajor := strconv.ParseUint(major, 10, 32)
	b, errMinor := strconv.ParseUint(minor, 10, 32)
	if errMajor != nil || errMinor != nil {
		return Number{}, fmt.Errorf("device number %q: not MAJOR:MINOR", s)
	}
	return Number{Major: uint32(a), Minor: uint32(b)}, nil
}

// MarshalText writes MAJOR:MINOR.
func (n Number) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads MAJOR:MINOR.
func (n *Number) UnmarshalText(b []byte) (err error) {
	*n, err = ParseNumber(string(b))
	return err
}
