package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
	"github.com/weir-io/weir/lab"
)

// hostsVariable has more verbs run on more machines than make test takes: "10000".
const hostsVariable = "WEIR_VERBS"

// seedVariable has the machines of one seed alone, "71", or with hostsVariable those from it on.
const seedVariable = "WEIR_SEED"

const (
	verbsDefault  = 100
	verbsEach     = 5 // of one machine
	messagesMost  = 20
	verbTakesMost = 30 * time.Second // most take a millisecond
)

// commandLine asks something of a machine.
func (m *maker) commandLine(dir string) []string {
	groups := groupsOf(dir)
	group := strings.TrimPrefix(strings.TrimPrefix(pick(m, groups), filepath.Join(dir, "sys/fs/cgroup")), "/blkio")
	target := pick(m, []string{"cgroup:/batch", "cgroup:/batch/night", "pid:4711", "pid:4800"})
	if m.IntN(2) == 0 {
		target = pick(m, []string{"cgroup:" + group, "cgroup:" + group, "pid:" + fmt.Sprint(5000+m.IntN(900)), "unit:nginx", "docker:web", "podman:x", "pod:a/b",
			"containerd:default/x", "vm:db", "vdb", "/data", pick(m, oddNames()), "docker:" + pick(m, oddNames()), "unit:" + pick(m, oddNames())})
	}
	limits := []string{pick(m, []string{"--write", "--read"}), pick(m, []string{"5MB/s", "1", "max", "500", "99999999999GB/s"})}
	if m.IntN(3) == 0 {
		limits = append(limits, "--write-iops", pick(m, []string{"1", "max", "1.5k"}))
	}
	if m.IntN(2) == 0 {
		limits = append(limits, "--on", pick(m, []string{"/data", "/", "vdb", "/dev/vda1", "254:16", "dm-0", "/data/file", "UUID=1-2", pick(m, oddNames())}))
	}
	limits = append(limits, pick(m, [][]string{nil, {"--hold", "kernel"}, {"--hold", "pacer"}, {"--cgroup", "v1"}, {"--cgroup", "v2"}})...)
	args := pick(m, [][]string{{"show", "--for", "0"}, {"show", "--for", "0", target}, {"why"}, {"why", target}, append([]string{"why", target}, limits...),
		append([]string{"set", "--dry-run", target}, limits...), append([]string{"set", "--dry-run", "--whole-cgroup", target}, limits...), append([]string{"set", "--dry-run", "--persist", target}, limits...),
		{"clear", "--dry-run", target}, append(append([]string{"run", "--dry-run"}, limits...), "--", "true"), {"plan", "diff"}, {"plan", "apply", "--dry-run"}, {"import"}, {"restore", "--dry-run"}})
	flags := []string{"--root", dir}
	if m.IntN(3) == 0 {
		flags = append(flags, "--json")
	}
	return append(append([]string{args[0]}, flags...), args[1:]...)
}

// said runs a verb as main does.
func said(t *testing.T, args []string) (data, messages string, exit int) {
	t.Helper()
	var out, say bytes.Buffer
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v\n%s", r, debug.Stack())
		}
		data, messages = out.String(), say.String()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), verbTakesMost)
	defer cancel()
	a := &app{out: cli.Out{Data: &out, Messages: &say}}
	command := rootFor(a, args)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	a.close()
	if status := (*cli.StatusError)(nil); err != nil && !errors.As(err, &status) {
		a.out.Fail(text.Error(err))
	}
	err = errors.Join(err, a.out.Flush(), a.out.Err(), ctx.Err())
	return "", "", cli.ExitCode(err)
}

// TestVerbsOnRandomHosts runs show, why, set --dry-run and others on machines that are partly real
// and partly nonsense. Nothing panics, every exit code is documented, messages are few and
// plain, and no machine changes.
func TestVerbsOnRandomHosts(t *testing.T) {
	lab.Unit(t)
	runs, from := verbsDefault, uint64(1)
	if text := os.Getenv(seedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		runs, from = verbsEach, n
	}
	if text := os.Getenv(hostsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		runs = n
	}
	ends := map[string]int{}
	base := t.TempDir()
	for seed := from; runs > 0; seed++ {
		dir := filepath.Join(base, fmt.Sprint(seed))
		m := newMaker(t, seed)
		m.make(t, dir)
		before := listing(dir)
		for range verbsEach {
			args := m.commandLine(dir)
			began := time.Now()
			data, messages, exit := said(t, args)
			if took := time.Since(began); took > verbTakesMost {
				t.Errorf("seed %d, %q took %s", seed, args, took)
			}
			if problem := wrong(args, data, messages, exit); problem != "" {
				t.Errorf("seed %d, %.300q: %s\nexit code %d\n%.3000s", seed, args, problem, exit, messages)
			}
			ends[fmt.Sprintf("%s %d", args[0], exit)]++
			runs--
		}
		if after := listing(dir); after != before {
			t.Errorf("seed %d: the machine has changed", seed)
		}
		_ = os.RemoveAll(dir)
	}
	for _, verb := range []string{"show 0", "why 0", "why 1", "set 0", "set 1", "set 2"} {
		if ends[verb] == 0 && os.Getenv(hostsVariable) != "" {
			t.Errorf("none ended with %s: %v", verb, ends)
		}
	}
	t.Logf("%v", ends)
}

// wrong is what a verb must not do; empty: it is all right.
func wrong(args []string, data, messages string, exit int) string {
	odd := func(r rune) bool { return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	switch lines := strings.Count(messages, "\n"); {
	case exit < 0 || exit > 3:
		return "weir has no such exit code"
	case lines > messagesMost:
		return fmt.Sprintf("%d lines of messages", lines)
	case len(messages) > 8000:
		return fmt.Sprintf("%d bytes of messages", len(messages))
	case exit == 0 && data == "" && messages == "":
		return "nothing is said"
	case exit > 1 && data+messages == "":
		return "no reason is given"
	case strings.ContainsFunc(data+messages, odd) || !utf8.ValidString(data+messages):
		return "control characters are printed: " + strconv.Quote(data)
	case args[len(args)-1] != "" && strings.Contains(strings.Join(args, " "), "--json") && data != "" && !json.Valid([]byte(data)):
		return "not JSON: " + data
	}
	return ""
}

// listing is a directory's files, their sizes and times.
func listing(dir string) string {
	var all strings.Builder
	for _, path := range found(dir, func(string, fs.DirEntry) bool { return true }) {
		if st, err := os.Lstat(path); err == nil {
			fmt.Fprintln(&all, path, st.Mode(), st.Size(), st.ModTime().UnixNano())
		}
	}
	return all.String()
}
