package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Rule is the limit that a group has on one device, as the kernel keeps it: every
// rate is a number or unlimited.
type Rule struct {
	Device blkdev.Number `json:"device"`
	Limit  limit.Limit   `json:"limit"`
}

// IsRuleFile reports whether a file of a group has that name for its rules, on v2 or v1.
func IsRuleFile(name string) bool { return name == fileV2 || slices.Contains(filesV1[:], name) }

// Rules reads the group's rules: one for each device with at least one bound.
func (g Group) Rules() ([]Rule, error) {
	if g.h.Version == V2 {
		return g.rulesV2()
	}
	return g.rulesV1(limit.Keys[:])
}

// RulesIfAny is Rules, but returns no error for a v2 group without the io controller, which
// cannot have rules.
func (g Group) RulesIfAny() ([]Rule, error) {
	rules, err := g.Rules()
	if fault.IsUnsupported(err) && g.h.Version == V2 && !g.IsRoot() {
		if missing, missingErr := g.Missing("io"); missingErr == nil && len(missing) > 0 {
			return nil, nil
		}
	}
	return rules, err
}

// NeverHadRules reports that the group never had a rule on any device. v1 keeps a counter for
// each device that had one, so one file is enough instead of four. v2 has only one file, and
// the answer is always false.
func (g Group) NeverHadRules() (bool, error) {
	if g.h.Version == V2 {
		return false, nil
	}
	text, err := g.read(bytesFileV1)
	if errors.Is(err, fs.ErrNotExist) {
		return false, g.whyNoRules(err)
	}
	return text == "" || strings.HasPrefix(text, "Total "), err
}

// Rule reads the group's rule for one device; limit.None if there is none.
func (g Group) Rule(dev blkdev.Number) (limit.Limit, error) {
	rules, err := g.Rules()
	if err != nil {
		return limit.Limit{}, err
	}
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.Device == dev }); i >= 0 {
		return rules[i].Limit, nil
	}
	return limit.None, nil
}

// RuleWith reads the group's rule for one device, at least the rates that with names: v1 has a file for
// each rate, and the others are not read and stay unset.
func (g Group) RuleWith(dev blkdev.Number, with limit.Limit) (limit.Limit, error) {
	if g.h.Version == V2 || with.IsZero() {
		return g.Rule(dev)
	}
	var named []limit.Key
	var rule limit.Limit
	for _, k := range limit.Keys {
		if with.Get(k).IsSet() {
			named, rule = append(named, k), rule.With(k, limit.Unlimited)
		}
	}
	rules, err := g.rulesV1(named)
	if err != nil {
		return limit.Limit{}, err
	}
	for _, r := range rules {
		for _, k := range named {
			if r.Device == dev {
				rule = rule.With(k, r.Limit.Get(k))
			}
		}
	}
	return rule, nil
}

// RuleWrites returns the lines that SetRule writes, in their order: one for v2, one
// for each rate named for v1, which has a file for each.
func (g Group) RuleWrites(dev blkdev.Number, l limit.Limit) []Write {
	var writes []Write
	for _, w := range g.ruleWrites(dev, l) {
		writes = append(writes, Write{File: g.File(w.File), Line: w.Line})
	}
	return writes
}

// SetRule changes the rates of one device that l sets, leaves the others, and reads
// the result back. Unlimited removes a bound. The error is a *WriteError when the
// kernel refuses a line or keeps another, and a *fault.Unsupported when the group cannot
// have rules.
func (g Group) SetRule(dev blkdev.Number, l limit.Limit) error {
	for _, w := range g.ruleWrites(dev, l) {
		if err := g.write(w.File, w.Line); err != nil {
			return g.explain(dev, err)
		}
	}
	kept, err := g.RuleWith(dev, l)
	if err == nil && kept.Overlay(l) != kept {
		kept, err = g.Rule(dev) // the error tells of all rates
	}
	if err != nil {
		return fmt.Errorf("read back rule of %s: %w", g.Dir(), err)
	}
	if want := kept.Overlay(l); want != kept {
		e := &WriteError{Write: g.RuleWrites(dev, l)[0], Kept: ruleLineV2(dev, kept), Rule: Rule{dev, kept}}
		for _, k := range limit.Keys {
			if asked, is := l.Get(k), kept.Get(k); asked.IsSet() && is != asked && is != g.h.Keeps(k, asked) {
				e.Why = "another program has set that meanwhile; weir leaves it"
			}
		}
		return e
	}
	return nil
}

// opsMost is the highest number of operations per second that the kernel can store
// (tg_set_limit and tg_set_conf, block/blk-throttle.c).
const opsMost = 1<<32 - 1

// Keeps returns what the kernel makes of a rate that is written. It keeps bytes as they are,
// and 32 bits of operations: v2 takes a larger number for no limit, and v1 cuts off what does
// not fit.
func (h *Hierarchy) Keeps(k limit.Key, r limit.Rate) limit.Rate {
	n, bound := r.Number()
	if !bound || n < opsMost || k != limit.RIOPS && k != limit.WIOPS {
		return r
	}
	switch kept := n & opsMost; {
	case h.Version == V2 || kept == opsMost:
		return limit.Unlimited
	case kept != 0:
		return limit.PerSecond(kept)
	}
	return r // and it is none that weir knows
}

// ruleWrites is RuleWrites with the bare names of the files.
func (g Group) ruleWrites(dev blkdev.Number, l limit.Limit) []Write {
	if l.IsZero() {
		return nil
	}
	if g.h.Version == V2 {
		return []Write{{File: fileV2, Line: ruleLineV2(dev, l)}}
	}
	return ruleWritesV1(dev, l)
}

// explain says what the kernel's answer to a rule means.
func (g Group) explain(dev blkdev.Number, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return g.whyNoRules(err)
	}
	var refused *WriteError
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case errors.Is(err, unix.ENODEV):
		refused.Why = fmt.Sprintf("the kernel knows no whole disk, dm, md or loop device %s", dev)
	case errors.Is(err, unix.ERANGE):
		refused.Why = "a rate must be at least 1"
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
		refused.Why = "the kernel does not know one of these rates"
	}
	return refused
}

// whyNoRules explains a missing rule file.
func (g Group) whyNoRules(cause error) error {
	if ok, err := g.Exists(); err != nil || !ok {
		return fmt.Errorf("cgroup %s: %w", g.Dir(), fs.ErrNotExist)
	}
	e := &fault.Unsupported{Feature: "limit disk I/O of cgroup " + g.Path()}
	switch {
	case g.h.Version == V1:
		e.Reason, e.Remedy = "the kernel has no blkio.throttle files", "it needs CONFIG_BLK_DEV_THROTTLING"
	case g.IsRoot():
		e.Reason, e.Remedy = "cgroup v2 has no limits on the root group", "name a group below it, or start the command with weir run"
	default:
		missing, err := g.Missing("io")
		switch {
		case err != nil:
			return err
		case len(missing) > 0:
			e.Reason = "the io controller is not enabled for it (no io.max)"
			e.Remedy = fmt.Sprintf("echo +io > %s", missing[0].File)
		default:
			e.Reason, e.Remedy = "the kernel has no io.max", "it needs CONFIG_BLK_DEV_THROTTLING"
		}
	}
	return e
}
