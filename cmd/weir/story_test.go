package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-io/weir/lab"
)

// TestStories runs testdata/story: what people saw who set limits by hand, and what
// weir says of it. Each script gets a disk with ext4 in $DIR, its $NUMBER, the mount
// points $BLKIO (v1) and $UNIFIED, and an $ID as Docker gives one.
func TestStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/story/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".txtar"), func(t *testing.T) {
			cgroups := lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.Rates, lab.NoSystemd, lab.FS("ext4"), lab.Loop).Cgroups
			t.Parallel()
			disk := lab.Disk(t, lab.FS("ext4"))
			runScripts(t, testscript.Params{Files: []string{story}, Setup: func(env *testscript.Env) error {
				env.Setenv("DIR", disk.Dir)
				env.Setenv("NUMBER", disk.Number.String())
				env.Setenv("BLKIO", cgroups.Blkio)
				env.Setenv("UNIFIED", cgroups.Unified)
				env.Setenv("ID", "6a2f09d4c1b8")
				return nil
			}})
		})
	}
}

// inside runs a command in a group, as who works by hand does: "inside FOLDER COMMAND…".
func inside() {
	err := os.WriteFile(filepath.Join(os.Args[1], "cgroup.procs"), []byte("0"), 0)
	if err == nil {
		var path string
		if path, err = exec.LookPath(os.Args[2]); err == nil {
			err = syscall.Exec(path, os.Args[2:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "inside:", err)
	os.Exit(1)
}

// ddReport is what dd says at its end: "104857600 bytes (105 MB, 100 MiB) copied, 0.5 s, …".
var ddReport = regexp.MustCompile(`(?m)^(\d+) bytes .*copied, ([0-9.e+-]+) s`)

// copied checks the rate that the last dd reports, in MB/s: "copied LOW HIGH", where
// HIGH may be max.
func copied(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: copied LOW HIGH")
	}
	low, err := strconv.ParseFloat(args[0], 64)
	ts.Check(err)
	report := ddReport.FindStringSubmatch(ts.ReadFile("stderr"))
	if report == nil {
		ts.Fatalf("no report of dd")
	}
	size, err := strconv.ParseFloat(report[1], 64)
	ts.Check(err)
	seconds, err := strconv.ParseFloat(report[2], 64)
	ts.Check(err)
	rate := size / seconds / 1e6
	ts.Logf("dd copied %.2f MB/s", rate)
	if rate < low {
		ts.Fatalf("dd copied %.2f MB/s, want at least %v", rate, low)
	}
	if args[1] == "max" {
		return
	}
	high, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	if rate > high {
		ts.Fatalf("dd copied %.2f MB/s, want at most %v", rate, high)
	}
}
