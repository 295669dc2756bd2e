package prove

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
)

// followed runs a shell script in a load's place, and follows it.
func followed(ctx context.Context, t *testing.T, script string, window time.Duration) *run {
	t.Helper()
	p := Prover{Load: []string{"/bin/sh", "-c", script}, Stderr: os.Stderr, Progress: func(string, float64) {}}
	test := Test{Path: load.Direct, Key: limit.WBPS, Rate: 1, Block: page, Size: page, For: window}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r := &run{test: test, began: now()}
	child, err := p.spawn(Place{Dir: t.TempDir()}, launch.Outside(), test, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	p.follow(ctx, child, out, r)
	r.ended = now()
	child.Kill()
	if _, err := child.Wait(); err != nil {
		t.Error(err)
	}
	return r
}

func TestFollow(t *testing.T) {
	r := followed(t.Context(), t, `echo '{"tick":{"at_ns":9000000000000000,"bytes":4096,"ops":1}}'; echo '{"result":{"began_ns":5,"ended_ns":9,"bytes":8192,"ops":2}}'; exec sleep 60`, time.Second)
	if r.failed != nil || r.hung || r.result.Bytes != 8192 || r.writer.Bytes[len(r.writer.Bytes)-1].Total != 4096 {
		t.Errorf("%+v", r)
	}
}

// A load that does not end as it should gives a row that cannot tell, and says why.
func TestFollowBadEnds(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		script string
		window time.Duration
		why    string
	}{
		"an error":  {t.Context(), "exit 3", time.Second, "status 3"},
		"a kill":    {t.Context(), "kill -9 $$", time.Second, "SIGKILL"},
		"a signal":  {t.Context(), "kill -TERM $$", time.Second, "SIGTERM"},
		"no report": {t.Context(), "echo hello", time.Second, "report"},
		"no end":    {t.Context(), "exec sleep 60", time.Millisecond - grace, "weir killed it"},
		"cancelled": {stopped, "exec sleep 60", time.Minute, "nothing"},
		"no result": {t.Context(), "true", time.Second, "no result"},
	} {
		began := time.Now()
		r := followed(c.ctx, t, c.script, c.window)
		row := rowOf(Place{}, r)
		if row.Verdict != CannotTell || !strings.Contains(row.Why, c.why) {
			t.Errorf("%s: %s (%s): %q, want %q in it", name, row.Verdict, row.Reason, row.Why, c.why)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}

// A load in a folder that is open inherits it, and is told no path.
func TestSpawnInAFolder(t *testing.T) {
	dir := t.TempDir()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := Prover{Load: []string{"/bin/sh", "-c", `readlink /proc/$$/fd/3; echo "$@"`, "sh"}, Stderr: os.Stderr}
	child, err := p.spawn(Place{Dir: "/data", Folder: folder}, launch.Outside(), Test{Path: load.Direct, Key: limit.WBPS, Block: page, Size: page, For: time.Second}, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	text, err := io.ReadAll(out)
	at, args, _ := strings.Cut(string(text), "\n")
	if err != nil || at != dir || !strings.Contains(args, " dir=fd:3 ") || strings.Contains(args, "/data") {
		t.Errorf("%q, %v", text, err)
	}
}

// What a load that did not end has done until it was killed is judged all the same: the
// disk may well have been held meanwhile.
func TestALoadThatHangsIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		disk, ahead float64 // bytes a second, and bytes
		verdict     Verdict
		reason      Reason
	}{
		"at the limit": {4 * mb, 60 * mb, HeldAtDevice, ""},
		"nothing":      {0, 60 * mb, CannotTell, Hung},
		"beyond":       {40 * mb, 600 * mb, NotHeld, TooMuch},
	} {
		disk := line(c.disk, 8*time.Second)
		ahead := steps(8*time.Second, func(at time.Duration) float64 { return c.ahead * min(at.Seconds(), 1) })
		r := &run{group: (&cgroupfs.Hierarchy{Version: cgroupfs.V2}).Root(),
			test:  Test{Path: load.Buffered, Key: limit.WBPS, Rate: 4 * mb, Block: page, Size: 600 * mb, For: 2 * time.Second},
			ended: 8 * time.Second, hung: true,
			result:  load.Result{Began: int64(300 * ms), Ended: int64(8 * time.Second)},
			writer:  Reading{Bytes: ahead, Ops: ahead},
			samples: &Samples{Cgroup: Reading{Bytes: disk, Ops: disk}, Device: Reading{Bytes: disk, Ops: disk}, Late: line(0, 8*time.Second), Counted: true},
		}
		row := rowOf(Place{}, r)
		if row.Verdict != c.verdict || row.Reason != c.reason {
			t.Errorf("%s: %s (%s): %s", name, row.Verdict, row.Reason, row.Why)
		}
		if text := row.Why + strings.Join(row.Warning, ""); !strings.Contains(text, "did not end") {
			t.Errorf("%s: nothing of its end in %q", name, text)
		}
	}
}

// Others in the group write through the page cache beside a direct load: a request of theirs passes as a whole, and
// the group is held all the same. One that is not is found.
func TestOthersInTheGroupWriteBack(t *testing.T) {
	const window = 6 * time.Second
	lumps := steps(window, func(at time.Duration) float64 { return 4 * mb * float64(1+int(at/(1990*ms))) }) // at 2 MB/s
	for name, c := range map[string]struct {
		writer, group Series
		verdict       Verdict
	}{
		"large requests":                    {line(50_000, window), lumps, Held},
		"the same, and nobody but the load": {lumps, lumps, NotHeld},
		"beyond":                            {line(50_000, window), line(4*mb, window), NotHeld},
	} {
		r := &run{group: (&cgroupfs.Hierarchy{Version: cgroupfs.V2}).Root(),
			test:   Test{Path: load.Direct, Key: limit.WBPS, Rate: 2 * mb, Block: page, Size: mb, For: window},
			ended:  window,
			result: load.Result{Began: int64(300 * ms), Ended: int64(window)},
			writer: Reading{Bytes: c.writer, Ops: line(50, window)},
			samples: &Samples{Cgroup: Reading{Bytes: c.group, Ops: line(50, window)}, Device: Reading{Bytes: c.group, Ops: line(50, window)},
				Late: line(0, window), Counted: true},
		}
		if row := rowOf(Place{}, r); row.Verdict != c.verdict {
			t.Errorf("%s: %s (%s): %s", name, row.Verdict, row.Reason, row.Why)
		}
	}
}
