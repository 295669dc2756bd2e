package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

const fileV2 = "io.max"

func (g Group) rulesV2() ([]Rule, error) {
	text, err := g.read(fileV2)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, g.whyNoRules(err)
	}
	if err != nil {
		return nil, err
	}
	rules, err := parseRulesV2(text)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", g.File(fileV2), err)
	}
	return rules, nil
}

// parseRulesV2 reads io.max, with lines such as "8:0 rbps=max wbps=1000000 riops=max
// wiops=max". It skips unknown keys (of a later kernel).
func parseRulesV2(text string) ([]Rule, error) {
	var rules []Rule
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if fields[0] == goneDevice {
			continue
		}
		dev, err := blkdev.ParseNumber(fields[0])
		if err != nil {
			return nil, err
		}
		r := Rule{Device: dev, Limit: limit.None}
		for _, field := range fields[1:] {
			name, value, ok := strings.Cut(field, "=")
			if !ok {
				return nil, fmt.Errorf("%q: not KEY=VALUE", field)
			}
			key, known := limit.KeyNamed(name)
			if !known {
				continue
			}
			rate, err := limit.ParseKernel(value)
			if err != nil {
				return nil, err
			}
			r.Limit = r.Limit.With(key, rate)
		}
		if r.Limit.Bounds() {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// ruleLineV2 spells the rates that l sets as io.max takes them.
func ruleLineV2(dev blkdev.Number, l limit.Limit) string {
	line := dev.String()
	for _, k := range limit.Keys {
		if r := l.Get(k); r.IsSet() {
			line += " " + k.String() + "=" + r.Kernel()
		}
	}
	return line
}
