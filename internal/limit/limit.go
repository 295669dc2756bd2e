package limit

import "strings"

// A Key names one of the four rates of a limit, as io.max does.
type Key int

// The four rates: read and write bytes per second, read and write operations per second.
const (
	RBPS Key = iota
	WBPS
	RIOPS
	WIOPS
)

// Keys lists the four rates in the order in which io.max prints them.
var Keys = [...]Key{RBPS, WBPS, RIOPS, WIOPS}

var keyNames = [...]string{RBPS: "rbps", WBPS: "wbps", RIOPS: "riops", WIOPS: "wiops"}

// String returns the kernel's name of the rate.
func (k Key) String() string { return keyNames[k] }

// IsOps reports whether the rate counts operations, not bytes.
func (k Key) IsOps() bool { return k == RIOPS || k == WIOPS }

// IsRead reports whether the rate limits reads.
func (k Key) IsRead() bool { return k == RBPS || k == RIOPS }

// KeyNamed returns the key that io.max spells name.
func KeyNamed(name string) (Key, bool) {
	for _, k := range Keys {
		if keyNames[k] == name {
			return k, true
		}
	}
	return 0, false
}

// A Limit is up to four rates. The zero Limit names none.
type Limit struct {
	RBPS  Rate `json:"rbps"`
	WBPS  Rate `json:"wbps"`
	RIOPS Rate `json:"riops"`
	WIOPS Rate `json:"wiops"`
}

// None is the limit without any bound: all four rates are unlimited.
var None = Limit{RBPS: Unlimited, WBPS: Unlimited, RIOPS: Unlimited, WIOPS: Unlimited}

func (l *Limit) field(k Key) *Rate {
	return [...]*Rate{RBPS: &l.RBPS, WBPS: &l.WBPS, RIOPS: &l.RIOPS, WIOPS: &l.WIOPS}[k]
}

// Get returns one rate.
func (l Limit) Get(k Key) Rate { return *l.field(k) }

// With returns the limit with one rate replaced.
func (l Limit) With(k Key, r Rate) Limit {
	*l.field(k) = r
	return l
}

// Overlay returns l with every rate that is set in named; the others stay.
func (l Limit) Overlay(named Limit) Limit {
	for _, k := range Keys {
		if r := named.Get(k); r.IsSet() {
			l = l.With(k, r)
		}
	}
	return l
}

// IsZero reports whether no rate is set.
func (l Limit) IsZero() bool { return l == Limit{} }

// Bounds reports whether at least one rate is a number.
func (l Limit) Bounds() bool {
	return l.RBPS.isNumber() || l.WBPS.isNumber() || l.RIOPS.isNumber() || l.WIOPS.isNumber()
}

// Bound returns the rates that are numbers, and leaves the others unset.
func (l Limit) Bound() Limit {
	for _, r := range [...]*Rate{&l.RBPS, &l.WBPS, &l.RIOPS, &l.WIOPS} {
		if !r.isNumber() {
			*r = Rate{}
		}
	}
	return l
}

// String describes the rates that are set: "read 10 MB/s, write 500 ops/s".
func (l Limit) String() string {
	var parts []string
	for _, k := range Keys {
		if r := l.Get(k); r.IsSet() {
			parts = append(parts, k.Direction()+" "+r.Format(k))
		}
	}
	if len(parts) == 0 {
		return "no rate named"
	}
	return strings.Join(parts, ", ")
}

// Direction returns "read" or "write".
func (k Key) Direction() string {
	if k.IsRead() {
		return "read"
	}
	return "write"
}
