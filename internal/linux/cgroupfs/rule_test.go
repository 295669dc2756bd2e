package cgroupfs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

func number(s string) blkdev.Number {
	n, err := blkdev.ParseNumber(s)
	if err != nil {
		panic(err)
	}
	return n
}

func rates(r, w, ri, wi uint64) limit.Limit {
	l := limit.None
	for k, n := range map[limit.Key]uint64{limit.RBPS: r, limit.WBPS: w, limit.RIOPS: ri, limit.WIOPS: wi} {
		if n > 0 {
			l = l.With(k, limit.PerSecond(n))
		}
	}
	return l
}

func TestParseRulesV2(t *testing.T) {
	for text, want := range map[string][]Rule{
		"": nil,
		"8:16 rbps=2097152 wbps=max riops=max wiops=120\n":                                 {{number("8:16"), rates(2097152, 0, 0, 120)}},
		"8:0 rbps=max wbps=max riops=max wiops=max\n":                                      nil,
		"8:0 rbps=1 wbps=2 riops=3 wiops=4\n\n254:0 rbps=max wbps=5 riops=max wiops=max\n": {{number("8:0"), rates(1, 2, 3, 4)}, {number("254:0"), rates(0, 5, 0, 0)}},
		"8:0 rbps=18446744073709551615 wbps=7 riops=max wiops=max":                         {{number("8:0"), rates(0, 7, 0, 0)}},
		"8:0 rbps=1 wbps=max riops=max wiops=max idle=3 latency=max\n":                     {{number("8:0"), rates(1, 0, 0, 0)}}, // io.low's keys
		"1048575:1048575 rbps=1 wbps=max riops=max wiops=max\n":                            {{number("1048575:1048575"), rates(1, 0, 0, 0)}},
		"8:0\n": nil,
	} {
		got, err := parseRulesV2(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parseRulesV2(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"8 rbps=1\n", "8:0 rbps\n", "8:0 rbps=\n", "8:0 rbps=-1\n", "8:0 rbps=0\n", "rbps=1\n", "8:0 rbps=1x\n", "sda rbps=1\n"} {
		if got, err := parseRulesV2(text); err == nil {
			t.Errorf("parseRulesV2(%q) = %v, want an error", text, got)
		}
	}
}

func TestRulesV1(t *testing.T) {
	g := groupOf(t, v1(t, map[string]string{
		"x/blkio.throttle.read_bps_device":   "8:0 1048576\n8:16 5\n",
		"x/blkio.throttle.write_bps_device":  "",
		"x/blkio.throttle.read_iops_device":  "8:0 4294967295\n", // "no limit", as kernels before 4.5 print it
		"x/blkio.throttle.write_iops_device": "8:16 10\n254:0 1\n",
	}), "/x")
	got, err := g.Rules()
	want := []Rule{{number("8:0"), rates(1048576, 0, 0, 0)}, {number("8:16"), rates(5, 0, 0, 10)}, {number("254:0"), rates(0, 0, 0, 1)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Rules = %v, %v; want %v", got, err, want)
	}
	if l, err := g.Rule(number("8:16")); err != nil || l != want[1].Limit {
		t.Errorf("Rule(8:16) = %v, %v", l, err)
	}
	if l, err := g.Rule(number("9:9")); err != nil || l != limit.None {
		t.Errorf("Rule(9:9) = %v, %v; want none", l, err)
	}
	for _, text := range []string{"8:0\n", "8:0 1 2\n", "x 1\n", "8:0 x\n", "8:0 0\n", "8:0 99999999999999999999\n"} {
		if got, err := parseRulesV1(nil, limit.RBPS, text); err == nil {
			t.Errorf("parseRulesV1(%q) = %v, want an error", text, got)
		}
	}
}

// On v1 only the files of the rates that are named are read, and the others stay unset.
func TestRuleWith(t *testing.T) {
	files := map[string]string{"x/blkio.throttle.write_bps_device": "8:0 5\n", "x/blkio.throttle.read_bps_device": "none of a kernel's\n", "x/io.max": "8:0 rbps=max wbps=5 riops=7 wiops=max\n"}
	one, dev, other := limit.Limit{WBPS: limit.PerSecond(1)}, number("8:0"), number("8:16")
	v1 := groupOf(t, v1(t, files), "/x")
	for of, want := range map[blkdev.Number]limit.Limit{dev: {WBPS: limit.PerSecond(5)}, other: {WBPS: limit.Unlimited}} {
		if got, err := v1.RuleWith(of, one); err != nil || got != want {
			t.Errorf("v1, %s: %v, %v; want %v", of, got, err, want)
		}
	}
	for _, with := range []limit.Limit{one.With(limit.RBPS, limit.Unlimited), {}} { // nothing that is named: all
		if got, err := v1.RuleWith(dev, with); err == nil {
			t.Errorf("v1, with %v: %v, want an error", with, got)
		}
	}
	if got, err := groupOf(t, v2(t, files), "/x").RuleWith(dev, one); err != nil || got != rates(0, 5, 7, 0) {
		t.Errorf("v2: %v, %v", got, err)
	}
}

func TestRuleWrites(t *testing.T) {
	l := limit.Limit{RBPS: limit.PerSecond(10), WIOPS: limit.Unlimited}
	dev := number("8:0")
	for name, c := range map[string]struct {
		fs   *FS
		want []Write
	}{
		"v1": {v1(t, nil), []Write{{"/blkio/x/blkio.throttle.read_bps_device", "8:0 10"}, {"/blkio/x/blkio.throttle.write_iops_device", "8:0 0"}}},
		"v2": {v2(t, nil), []Write{{"/x/io.max", "8:0 rbps=10 wiops=max"}}},
	} {
		g := groupOf(t, c.fs, "/x")
		for i := range c.want {
			c.want[i].File = c.fs.Root() + "/sys/fs/cgroup" + c.want[i].File
		}
		if got := g.RuleWrites(dev, l); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: RuleWrites = %v, want %v", name, got, c.want)
		}
		if got := g.RuleWrites(dev, limit.Limit{}); len(got) != 0 {
			t.Errorf("%s: RuleWrites of nothing = %v", name, got)
		}
	}
}

func TestAGroupWithoutRuleFilesSaysWhy(t *testing.T) {
	unified := v2(t, map[string]string{"cgroup.subtree_control": "pids\n", "x/cgroup.procs": "", "y/cgroup.procs": ""})
	if _, err := groupOf(t, unified, "/").Rules(); !fault.IsUnsupported(err) || !strings.Contains(err.Error(), "cgroup v2 has no limits on the root group") {
		t.Errorf("root: %v", err)
	}
	_, err := groupOf(t, unified, "/x").Rules()
	if want := "echo +io > " + unified.Root() + "/sys/fs/cgroup/cgroup.subtree_control"; !fault.IsUnsupported(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("controller not enabled: %v; want %q", err, want)
	}
	if _, err := groupOf(t, unified, "/gone").Rules(); !IsGone(err) || fault.IsUnsupported(err) {
		t.Errorf("no such group: %v", err)
	}
	enabled := v2(t, map[string]string{"cgroup.subtree_control": "io\n", "x/cgroup.procs": ""})
	if _, err := groupOf(t, enabled, "/x").Rules(); !fault.IsUnsupported(err) || !strings.Contains(err.Error(), "CONFIG_BLK_DEV_THROTTLING") {
		t.Errorf("kernel without throttling: %v", err)
	}
	if _, err := groupOf(t, v1(t, map[string]string{"x/tasks": ""}), "/x").Rules(); !fault.IsUnsupported(err) {
		t.Errorf("v1 kernel without throttling: %v", err)
	}
}

// Whatever is read as a rule is written as one that reads back the same.
func FuzzRulesV2(f *testing.F) {
	for _, s := range []string{"8:16 rbps=2097152 wbps=max riops=max wiops=120\n", "8:0 rbps=1 wbps=2 riops=3 wiops=4\n8:0", "8:0 =", "", "254:0 rbps=0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := parseRulesV2(text)
		if err != nil {
			return
		}
		for _, r := range rules {
			again, err := parseRulesV2(ruleLineV2(r.Device, r.Limit) + "\n")
			if err != nil || len(again) != 1 || again[0] != r {
				t.Fatalf("%v is written as %q, which reads as %v, %v", r, ruleLineV2(r.Device, r.Limit), again, err)
			}
		}
	})
}

func FuzzRulesV1(f *testing.F) {
	for _, s := range []string{"8:0 1048576\n", "8:0 4294967295\n", "8:0\n", "\n\n8:0 1\n8:0 2\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range limit.Keys {
			rules, err := parseRulesV1(nil, k, text)
			if err != nil {
				return
			}
			for _, r := range rules {
				if !r.Limit.Bounds() {
					t.Fatalf("%q: a rule that bounds nothing: %v", text, r)
				}
			}
		}
	})
}
