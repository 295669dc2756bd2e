package why

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Where the owner takes other limits to keep, what is in force can be kept.
func TestARecordThatCanBeUpdated(t *testing.T) {
	f := good()
	f.Target, f.Group.Record = "docker:web", recordOf(vda, 5e6)
	f.Group.Record.Updates = true
	found, _ := Judge(f).Find("record-differs")
	if n := len(found.Fixes); n != 2 || len(found.Fixes[0].Lines) != 1 || found.Fixes[0].Lines[0] != "weir set docker:web --write 10000000 --on /dev/vda --persist" {
		t.Errorf("%+v", found)
	}
}

// What was just set and nobody keeps is no fault: the first fix keeps it. What weir itself
// keeps is not spoken of.
func TestALimitThatItsOwnerDoesNotKeep(t *testing.T) {
	f := good()
	f.Target, f.Group.Record = "docker:web", &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect web"}
	r := Judge(f)
	if _, differs := r.Find("record-differs"); differs {
		t.Error("no limit is called another limit")
	}
	found, _ := r.Find("record-lacks")
	if found.Severity != Note || len(found.Fixes) != 2 || found.Fixes[0].Lines[0] != "weir set docker:web --write 10000000 --on /dev/vda --persist" || strings.Contains(found.Fixes[0].Lines[0], "clear") {
		t.Errorf("%+v", found)
	}
	f.Group.Kept = Kept{File: "/var/lib/weir/limits/x", Rules: f.Group.Rules}
	if found, is := Judge(f).Find("record-lacks"); is {
		t.Errorf("weir keeps it: %+v", found)
	}
	f.Group.Kept, f.Group.Rules = Kept{}, []cgroupfs.Rule{{Device: vda.Number, Limit: limit.None}}
	if found, is := Judge(f).Find("record-lacks"); is {
		t.Errorf("no limit is in force: %+v", found)
	}
	f = good()
	f.Group.Record, f.Group.Kept = recordOf(vda, 5e6), Kept{File: "/var/lib/weir/limits/x", Rules: f.Group.Rules}
	if found, is := Judge(f).Find("record-differs"); is {
		t.Errorf("weir sets its own after Docker: %+v", found)
	}
}

// What weir keeps counts for the rates and devices that it keeps, and hides nothing of others: what is set when the
// target starts is the owner's limit with weir's over it.
func TestWhatWeirKeeps(t *testing.T) {
	const file = "/var/lib/weir/limits/x"
	kept := func(rules ...cgroupfs.Rule) Kept { return Kept{File: file, Rules: rules} }
	docker := &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect web"}
	both := cgroupfs.Rule{Device: vda.Number, Limit: limit.None.With(limit.WBPS, limit.PerSecond(10e6)).With(limit.RBPS, limit.PerSecond(3e6))}
	for name, c := range map[string]struct {
		record         *targets.Record
		kept           Kept
		now            []cgroupfs.Rule
		planned        []cgroupfs.Rule
		code, says, do string
	}{
		"another number":             {docker, kept(rule1(vda, 4e6)), []cgroupfs.Rule{rule1(vda, 10e6)}, nil, "record-differs", "weir keeps another limit", "weir set docker:web --write 10000000 --on /dev/vda --persist"},
		"another number, no engine":  {nil, kept(rule1(vda, 4e6)), []cgroupfs.Rule{rule1(vda, 10e6)}, nil, "record-differs", "weir keeps another limit", "weir set docker:web --write 10000000 --on /dev/vda --persist"},
		"nothing is in force":        {docker, kept(rule1(vda, 4e6)), nil, nil, "record-differs", "weir keeps another limit", "weir set docker:web --write 4000000 --on /dev/vda"},
		"another device":             {docker, kept(rule1(vdb, 4e6)), []cgroupfs.Rule{rule1(vda, 10e6), rule1(vdb, 4e6)}, nil, "record-lacks", "Docker does not keep this limit", "weir set docker:web --write 10000000 --on /dev/vda --persist"},
		"one of two rates":           {docker, kept(rule1(vda, 10e6)), []cgroupfs.Rule{both}, nil, "record-lacks", "Docker keeps only a part", "weir set docker:web --read 3000000 --write 10000000 --on /dev/vda --persist"},
		"Docker's other device":      {recordOf(vda, 5e6), kept(rule1(vdb, 4e6)), []cgroupfs.Rule{rule1(vda, 10e6), rule1(vdb, 4e6)}, nil, "record-differs", "Docker keeps another limit", "weir set docker:web --write 10000000 --on /dev/vda --persist"},
		"the device is not known":    {docker, Kept{File: file, Unknown: true}, []cgroupfs.Rule{rule1(vda, 10e6)}, nil, "", "", ""},
		"a plan has it":              {docker, Kept{}, []cgroupfs.Rule{rule1(vda, 10e6)}, []cgroupfs.Rule{rule1(vda, 10e6)}, "", "", ""},
		"a plan has another number":  {docker, Kept{}, []cgroupfs.Rule{rule1(vda, 10e6)}, []cgroupfs.Rule{rule1(vda, 9e6)}, "record-lacks", "Docker does not keep this limit", "weir set docker:web --write 10000000 --on /dev/vda --persist"},
		"a plan has one, weir other": {docker, kept(rule1(vda, 10e6)), []cgroupfs.Rule{both}, []cgroupfs.Rule{{Device: vda.Number, Limit: limit.Limit{RBPS: limit.PerSecond(3e6)}}}, "", "", ""},
	} {
		f := good()
		f.Target, f.Group.Record, f.Group.Kept, f.Group.Rules, f.Group.Planned = "docker:web", c.record, c.kept, c.now, c.planned
		r := Judge(f)
		for _, code := range []string{"record-lacks", "record-differs"} {
			found, is := r.Find(code)
			if is != (code == c.code) {
				t.Errorf("%s: %s is found: %t %+v", name, code, is, found)
			} else if is && (!strings.HasPrefix(found.Text, c.says) || found.Fixes[0].Lines[0] != c.do) {
				t.Errorf("%s: %+v", name, found)
			}
		}
	}
}

// A rate that the owner does not keep is not another number of that rate.
func TestARecordOfSomeRates(t *testing.T) {
	reads := limit.Limit{RBPS: limit.PerSecond(5e6)}
	both := reads.With(limit.WBPS, limit.PerSecond(10e6))
	for name, c := range map[string]struct {
		kept, now      limit.Limit
		code, says, do string
	}{
		"one is kept":       {reads, both, "record-lacks", "Docker keeps only a part of this limit", "weir set docker:web --read 5000000 --write 10000000 --on /dev/vda --persist"},
		"all are kept":      {both, both, "", "", ""},
		"more is kept":      {both, reads, "record-differs", "Docker keeps another limit", "weir set docker:web --read 5000000 --on /dev/vda --persist"},
		"another is kept":   {limit.Limit{RBPS: limit.PerSecond(4e6)}, both, "record-differs", "Docker keeps another limit", "weir set docker:web --read 5000000 --write 10000000 --on /dev/vda --persist"},
		"nothing is kept":   {limit.Limit{}, both, "record-lacks", "Docker does not keep this limit", "weir set docker:web --read 5000000 --write 10000000 --on /dev/vda --persist"},
		"nothing is needed": {limit.None, limit.None, "", "", ""},
	} {
		f := good()
		f.Target, f.Group.Rules = "docker:web", []cgroupfs.Rule{{Device: vda.Number, Limit: limit.None.Overlay(c.now)}}
		f.Group.Record = &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect web", Limits: []targets.Recorded{{Path: "/dev/vda", Device: vda.Number, Limit: c.kept}}}
		r := Judge(f)
		for _, code := range []string{"record-lacks", "record-differs"} {
			found, is := r.Find(code)
			if is != (code == c.code) {
				t.Errorf("%s: %s is found: %t", name, code, is)
			} else if is && (!strings.HasPrefix(found.Text, c.says) || found.Fixes[0].Lines[0] != c.do || len(found.Evidence) != 2) {
				t.Errorf("%s: %+v", name, found)
			}
		}
	}
}

// Only the version that drops flags is said to.
func TestOnlyOneDockerDropsFlags(t *testing.T) {
	for version, drops := range map[string]bool{"26.1.5": true, "20.10.24": false, "": false} {
		f := good()
		f.Group.Rules, f.Places[0].Devices[0].Limit = nil, limit.None
		f.Group.Record = &targets.Record{By: "Docker", Command: "docker", Version: version, Source: "docker inspect web"}
		found, _ := Judge(f).Find("record-empty")
		if strings.Contains(found.Text, "26.1.5") != drops {
			t.Errorf("%q: %s", version, found.Text)
		}
		f.Group.Rules = []cgroupfs.Rule{rule1(vda, 10e6)}
		lacks, _ := Judge(f).Find("record-lacks")
		if named := slices.ContainsFunc(lacks.Fixes, func(x Fix) bool { return strings.Contains(x.Text, "docker run ") }); named == drops {
			t.Errorf("%q: the fixes are %+v", version, lacks.Fixes)
		}
	}
}

// A limit that only the command line named was not read on this host.
func TestEvidenceWasRead(t *testing.T) {
	f := good()
	f.Group = Group{Path: "/", Dir: "/sys/fs/cgroup/blkio", Root: true, Version: cgroupfs.V1}
	io := Mounted{Version: 1, At: "/sys/fs/cgroup/blkio", Controllers: []string{"blkio"}}
	f.IO, f.Mounted = &io, []Mounted{io}
	d := &f.Places[0].Devices[0]
	d.InForce, d.Limit, d.Asked, d.Queue.MaxSectors = limit.None, limit.None.Overlay(wbps(5e6)), wbps(5e6), 4<<20
	for _, found := range Judge(f).Findings {
		for _, e := range found.Evidence {
			if strings.Contains(e.Value, "5 MB/s") {
				t.Errorf("%s quotes %+v", found.Code, e)
			}
		}
	}
}
