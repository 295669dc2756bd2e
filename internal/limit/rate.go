package limit

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// The largest values a rule can carry. The kernel keeps bytes/s in 64 bits with
// all ones meaning "no limit", and ops/s in 32 bits likewise (block/blk-throttle.c,
// tg_set_limit; v1's tg_set_conf_uint cuts a larger number off without an error).
// Half of the 64-bit range is kept free so that sums of two limits cannot wrap.
const (
	MaxBytesPerSec = math.MaxInt64
	MaxOpsPerSec   = math.MaxUint32 - 1
)

// A Rate is one number of a limit, in one of three states: unset (the zero value:
// not named, or not known), unlimited, or a number of at least 1 per second.
type Rate struct {
	state rateState
	n     uint64
}

type rateState uint8

const (
	unset rateState = iota
	unlimited
	number
)

// Unlimited is the rate without a bound; the kernel's v2 files spell it "max".
var Unlimited = Rate{state: unlimited}

// PerSecond returns the rate of n per second. n must be at least 1: the kernel has no rule that
// blocks all I/O (v1 reads 0 as "no limit", v2 refuses it).
func PerSecond(n uint64) Rate {
	if n == 0 {
		panic("limit.PerSecond: 0 is not a rate")
	}
	return Rate{state: number, n: n}
}

// IsSet reports whether the rate is a number or unlimited.
func (r Rate) IsSet() bool { return r.state != unset }

// IsUnlimited reports whether the rate is known to have no bound.
func (r Rate) IsUnlimited() bool { return r.state == unlimited }

// Number returns the rate per second; ok is false if it is unset or unlimited.
func (r Rate) Number() (n uint64, ok bool) { return r.n, r.state == number }

func (r Rate) isNumber() bool { return r.state == number }

// Kernel returns the rate as v2's io.max spells it: a number, "max", or "" for unset.
func (r Rate) Kernel() string {
	switch r.state {
	case unlimited:
		return "max"
	case number:
		return strconv.FormatUint(r.n, 10)
	default:
		return ""
	}
}

// ParseKernel reads a rate as v2's io.max spells it. The kernel's own "all ones"
// values count as unlimited, as they do in the kernel.
func ParseKernel(s string) (Rate, error) {
	if s == "max" {
		return Unlimited, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return Rate{}, fmt.Errorf("parse rate %q: not a number and not max", s)
	}
	switch n {
	case 0:
		return Rate{}, fmt.Errorf("parse rate %q: 0 is no rate", s)
	case math.MaxUint64:
		return Unlimited, nil
	}
	return PerSecond(n), nil
}

// MarshalJSON writes a number, "max" for unlimited, or null for unset.
func (r Rate) MarshalJSON() ([]byte, error) {
	switch r.state {
	case unlimited:
		return []byte(`"max"`), nil
	case number:
		return strconv.AppendUint(nil, r.n, 10), nil
	default:
		return []byte("null"), nil
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rate) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*r = Rate{}
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	parsed, err := ParseKernel(s)
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
