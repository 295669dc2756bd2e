package weir

import (
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// Rates are limits per second on one device, named as in the kernel's io.max. The range of bytes is
// 1 to 1<<63 - 1, and that of operations 1 to 1<<32 - 2. Unlimited is no bound. 0 is a rate that is
// not named: Set leaves it as it is.
type Rates struct {
	RBPS  uint64 // bytes read
	WBPS  uint64 // bytes written
	RIOPS uint64 // read operations
	WIOPS uint64 // write operations
}

// A Limit is a limit at a place.
type Limit struct {
	// On is a path, a device ("/dev/vdb", "vdb" or "254:16"), or empty: every disk that the target
	// has mounted. A limit is on whole disks, so a partition stands for its disk.
	On    string
	Rates Rates
}

// A Hold says what is to hold buffered writes. Direct and synchronous writes, and reads, are always
// the kernel's to hold.
type Hold string

// What is to hold buffered writes.
const (
	HoldAuto   Hold = "auto"   // the kernel where it can, and the pacer elsewhere; the default
	HoldKernel Hold = "kernel" // the kernel's rule alone; this ends what the pacer does for the target
	HoldPacer  Hold = "pacer"  // the pacer; it is refused where there is none
)

// inner is the core's word for a Hold; the zero Hold stays zero.
func (h Hold) inner() (limit.Hold, error) {
	switch h {
	case "", HoldAuto, HoldKernel, HoldPacer:
		return limit.Hold(h), nil
	}
	return "", fault.Misusef("hold %q: there are auto, kernel and pacer", string(h))
}

// fields are the rates of a limit by the kernel's keys.
func (r *Rates) fields() map[limit.Key]*uint64 {
	return map[limit.Key]*uint64{limit.RBPS: &r.RBPS, limit.WBPS: &r.WBPS, limit.RIOPS: &r.RIOPS, limit.WIOPS: &r.WIOPS}
}

// inner is the core's form of rates.
func (r Rates) inner() (l limit.Limit, err error) {
	fields := r.fields()
	for _, k := range limit.Keys {
		n, most := *fields[k], uint64(limit.MaxBytesPerSec)
		if k.IsOps() {
			most = limit.MaxOpsPerSec
		}
		switch {
		case n == Unlimited:
			l = l.With(k, limit.Unlimited)
		case n > most:
			return l, fault.Misusef("%s %d: the most is %d, and Unlimited for no limit", k, n, most)
		case n > 0:
			l = l.With(k, limit.PerSecond(n))
		}
	}
	return l, nil
}

// ratesOf is a limit of the core, in this package's form.
func ratesOf(l limit.Limit) (r Rates) {
	for k, field := range r.fields() {
		if n, ok := l.Get(k).Number(); ok {
			*field = n
		} else if l.Get(k).IsUnlimited() {
			*field = Unlimited
		}
	}
	return r
}

// askedOf is what limits ask of the core. mayBeBare says that a place may have no rates.
func askedOf(limits []Limit, mayBeBare bool) ([]limit.Asked, error) {
	var all []limit.Asked
	for _, one := range limits {
		l, err := one.Rates.inner()
		if err != nil {
			return nil, err
		}
		if l.IsZero() && !mayBeBare {
			return nil, fault.Misusef("limit on %s: no rate is named", placeWords(one.On))
		}
		all = append(all, limit.Asked{On: one.On, Limit: l})
	}
	return all, nil
}

// placeWords names a place to people.
func placeWords(on string) string {
	if on == "" {
		return "every disk of the target"
	}
	return fmt.Sprintf("%q", on)
}
