package why

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// The maker of a group or a device chooses its name, and root pastes the lines: a name is one word
// in each of them.
func TestNamesInLinesAreQuoted(t *testing.T) {
	const target, node, file = "cgroup:/$(reboot)", "/dev/mapper/$(reboot)", "/sys/fs/cgroup/$(reboot)/memory."
	lines := 0
	for name, change := range map[string]func(*Facts){
		"rule-elsewhere": func(f *Facts) {
			f.Group.Rules, f.Places[0].Devices[0].Limit = []cgroupfs.Rule{rule1(vdb, 10e6)}, limit.None
		},
		"limit-above": func(f *Facts) {
			f.Group.Rules, f.Group.Above = nil, []Above{{"/up", []cgroupfs.Rule{rule1(vda, 5e6)}}}
			f.Places[0].Devices[0].Above = wbps(5e6)
		},
		"escapes-not-held": func(*Facts) {},
		"slow-drain": func(f *Facts) {
			f.Group.Memory = Memory{Memory: cgroupfs.Memory{Max: 64 << 20}, MaxFile: file + "max", Known: true}
		},
		"record-lacks": func(f *Facts) {
			f.Group.Record = &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect web"}
		},
		"record-empty": func(f *Facts) {
			f.Group.Rules, f.Places[0].Devices[0].Limit = nil, limit.None
			f.Group.Record = &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect web"}
		},
		"record-differs": func(f *Facts) {
			f.Group.Record = &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect web", Limits: []targets.Recorded{{Device: vda.Number, Limit: wbps(1e6)}}}
		},
		"read-only": func(f *Facts) {
			f.IO.At, f.IO.ReadOnly = file, true
		},
		"v1-writeback": func(f *Facts) {
			f.IO.At, f.IO.Version, f.Places[0].Writeback = file, 1, false
		},
		"unit-differs": func(f *Facts) { *f = ofUnit(nil) },
		"unit-conflict": func(f *Facts) {
			*f = ofUnit(map[blkdev.Number][]Spelling{vda.Number: {{"/dev/block/252:0", wbps(10e6)}, {"/dev/vda", wbps(5e6)}}})
		},
	} {
		f := good()
		change(&f)
		f.Target, f.Places[0].Devices[0].Node = target, node
		r := Judge(f)
		if _, is := r.Find(name); !is {
			t.Errorf("%s: not found among %+v", name, r.Findings)
		}
		for _, found := range r.Findings {
			for _, fix := range found.Fixes {
				if _, flags, is := strings.Cut(fix.Text, "docker run "); is && strings.Contains(strings.ReplaceAll(flags, quote(node+":10000000"), ""), "$(") {
					t.Errorf("%s: a shell runs a part of %s", found.Code, fix.Text)
				}
				for _, line := range fix.Lines {
					lines++
					if rest := strings.NewReplacer(quote(target), "", quote(node), "", quote(file+"max"), "", quote(file+"high"), "", quote(file), "", quote(file+"/blkio.throttle.write_bps_device"), "").Replace(line); strings.Contains(rest, "$(") {
						t.Errorf("%s: a shell runs a part of %s", found.Code, line)
					}
				}
			}
		}
	}
	if lines < 8 {
		t.Errorf("%d lines were looked at", lines)
	}
}

// On persistent memory neither the kernel's throttle nor the pacer sees any I/O.
func TestDAX(t *testing.T) {
	f := good()
	f.Places[0].FS.SuperOptions, f.Places[0].Writeback = "rw,dax=always", false
	r := Judge(f)
	if found, is := r.Find("dax"); !is || found.Severity != Breaks || len(found.Fixes) != 1 {
		t.Errorf("%+v", r.Findings)
	}
	for _, c := range r.Matrix {
		if c.Held != No && c.Held != NoLimit {
			t.Errorf("%+v", c)
		}
	}
}
