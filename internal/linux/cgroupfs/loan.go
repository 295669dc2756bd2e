package cgroupfs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A loan lets a group's writes to one device go past its rule of v1 for a moment: the rule is
// loanMark higher then. That is more than any disk does, and little enough for the kernel to
// multiply with a time. The rule that is lent on can be told from the higher one, so that
// nothing else has to be on record, and Rules says what it is.
const loanMark = 1 << 46

// ErrNoLoan says that there is no rule to lend on.
var ErrNoLoan = errors.New("there is no rule of cgroup v1 on writes")

// Lend begins a loan, once before has been told what ends it. The caller has locked the
// group's limits (see LimitsLock).
func (g Group) Lend(dev blkdev.Number, before func(back Write) error) error {
	if g.h.Version != V1 {
		return ErrNoLoan
	}
	rule, err := g.Rule(dev)
	if err != nil {
		return err
	}
	n, bound := rule.WBPS.Number()
	if !bound || n >= loanMark {
		return ErrNoLoan
	}
	if err := before(g.RuleWrites(dev, limit.Limit{WBPS: limit.PerSecond(n)})[0]); err != nil {
		return err
	}
	return g.write(filesV1[limit.WBPS], fmt.Sprintf("%s %d", dev, n+loanMark))
}

// Repay ends a loan. A rule that somebody has set meanwhile stays.
func (g Group) Repay(dev blkdev.Number) error {
	if g.h.Version != V1 {
		return nil
	}
	text, err := g.read(filesV1[limit.WBPS])
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		var n uint64
		number, rate, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := fmt.Sscan(rate, &n); number != dev.String() || err != nil {
			continue
		}
		if is := lentOn(n); is != n {
			return g.write(filesV1[limit.WBPS], fmt.Sprintf("%s %d", dev, is))
		}
	}
	return nil
}

// lentOn is the rule on writes without a loan.
func lentOn(n uint64) uint64 {
	if n >= loanMark && n < 2*loanMark {
		return n - loanMark
	}
	return n
}

// LimitsLock names the lock of who changes a group's limits (package state).
func LimitsLock(v Version, path string) string { return fmt.Sprintf("limits of %s %s", v, path) }
