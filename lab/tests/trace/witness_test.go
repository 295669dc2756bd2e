package trace_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A witness is the kernel's own record of the calls and requests that a trace is held against:
// its event buffer, by the clock that weir's programs use. The load's own clock also has what
// comes between it and the kernel, which on an emulated or a busy processor can be most of it.
type witness struct {
	dir string // an instance of tracefs
}

const tracefs = "/sys/kernel/tracing"

// witnessed are the events, and which of the calls: pread64, pwrite64 and fsync of amd64.
var witnessed = map[string]string{
	"raw_syscalls/sys_enter":       "id == 17 || id == 18 || id == 74",
	"raw_syscalls/sys_exit":        "id == 17 || id == 18 || id == 74",
	"io_uring/io_uring_submit_req": "", "io_uring/io_uring_complete": "",
}

// newWitness begins a record; nil where the kernel keeps none.
func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{dir: filepath.Join(tracefs, "instances", "weir-"+strings.ReplaceAll(t.Name(), "/", "-"))}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Logf("the kernel keeps no record of its own: %v", err)
		return nil
	}
	t.Cleanup(func() {
		w.write(t, "tracing_on", "0")
		w.write(t, "events/enable", "0")
		if err := os.Remove(w.dir); err != nil {
			t.Error(err)
		}
	})
	w.write(t, "trace_clock", "mono")
	for event, only := range witnessed {
		dir := filepath.Join("events", event)
		if _, err := os.Stat(filepath.Join(w.dir, dir)); errors.Is(err, fs.ErrNotExist) {
			continue // it had another name
		}
		if only != "" {
			w.write(t, dir+"/filter", only)
		}
		w.write(t, dir+"/enable", "1")
	}
	return w
}

func (w *witness) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0); err != nil {
		t.Error(err)
	}
}

// recorded is a line of the record: who, when in seconds, which event, and what of it.
var recorded = regexp.MustCompile(`-(\d+)\s+\[\d+\] \S+\s+(\d+\.\d+): (\w+): (.*)$`)

// kindOfCall is what a call is for a job.
var kindOfCall = map[string]string{"17": "read", "18": "write", "74": "fsync", "READ": "read", "WRITE": "write", "FSYNC": "fsync"}

var request = regexp.MustCompile(`req (\S+?),.*?(?:opcode (\w+)|result)`)

// heard are the times of a thread's calls and requests, by kind: others run beside it.
func (w *witness) heard(t *testing.T, tid int) map[string]timed {
	t.Helper()
	f, err := os.Open(filepath.Join(w.dir, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type began struct {
		kind string
		at   float64
	}
	open, all := map[string]began{}, map[string]timed{}
	end := func(key string, at float64) {
		if b, ok := open[key]; ok && b.kind != "" {
			sum := all[b.kind]
			sum.add(time.Duration((at-b.at)*float64(time.Second)), 1)
			all[b.kind] = sum
		}
		delete(open, key)
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := recorded.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		at, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		fields, own := strings.Fields(m[4]), m[1] == strconv.Itoa(tid)
		polled := strings.Contains(lines.Text(), "iou-sqp-"+strconv.Itoa(tid)+"-") // the kernel's thread that submits for it
		switch q := request.FindStringSubmatch(m[4]); {
		case m[3] == "sys_enter" && own: // NR 74 (3, …)
			open["call"] = began{kindOfCall[fields[1]], at}
		case m[3] == "sys_exit" && own:
			end("call", at)
		case m[3] == "io_uring_submit_req" && q != nil && (own || polled):
			open[q[1]] = began{kindOfCall[q[2]], at}
		case m[3] == "io_uring_complete" && q != nil:
			end(q[1], at)
		}
	}
	return all
}
