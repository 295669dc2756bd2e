package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// filesV1 are v1's rule files, one for each rate.
var filesV1 = [...]string{
	limit.RBPS:  "blkio.throttle.read_bps_device",
	limit.WBPS:  "blkio.throttle.write_bps_device",
	limit.RIOPS: "blkio.throttle.read_iops_device",
	limit.WIOPS: "blkio.throttle.write_iops_device",
}

// rulesV1 reads the rules with some of their rates.
func (g Group) rulesV1(keys []limit.Key) ([]Rule, error) {
	var rules []Rule
	for _, k := range keys {
		text, err := g.read(filesV1[k])
		if errors.Is(err, fs.ErrNotExist) {
			return nil, g.whyNoRules(err)
		}
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		if rules, err = parseRulesV1(rules, k, text); err != nil {
			return nil, fmt.Errorf("parse %s: %w", g.File(filesV1[k]), err)
		}
	}
	return rules, nil
}

// parseRulesV1 adds the rates of one file, with lines such as "8:0 1048576".
func parseRulesV1(rules []Rule, k limit.Key, text string) ([]Rule, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if fields[0] == goneDevice {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%q: not DEVICE RATE", line)
		}
		dev, err := blkdev.ParseNumber(fields[0])
		if err != nil {
			return nil, err
		}
		rate, err := limit.ParseKernel(fields[1])
		if err != nil {
			return nil, err
		}
		// v1 prints its 32-bit "no limit" of a device that has another rate bound
		// as a number on some kernels.
		if n, _ := rate.Number(); k.IsOps() && n == math.MaxUint32 {
			rate = limit.Unlimited
		}
		if rate.IsUnlimited() {
			continue
		}
		if n, _ := rate.Number(); k == limit.WBPS {
			rate = limit.PerSecond(lentOn(n))
		}
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Device == dev })
		if i < 0 {
			i = len(rules)
			rules = append(rules, Rule{Device: dev, Limit: limit.None})
		}
		rules[i].Limit = rules[i].Limit.With(k, rate)
	}
	return rules, nil
}

// ruleWritesV1 spells the rates that l sets; 0 removes a bound.
func ruleWritesV1(dev blkdev.Number, l limit.Limit) []Write {
	var writes []Write
	for _, k := range limit.Keys {
		r := l.Get(k)
		if !r.IsSet() {
			continue
		}
		n, _ := r.Number()
		writes = append(writes, Write{File: filesV1[k], Line: dev.String() + " " + strconv.FormatUint(n, 10)})
	}
	return writes
}
