package trace_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// messages are what weir says, and can be awaited.
type messages struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(b)
}

// String is what there is so far.
func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

func (m *messages) has(text string) bool { return strings.Contains(m.String(), text) }

// traceUntil traces this process while it does something, and ends the trace as a person
// does, with ctrl-c.
func traceUntil(t *testing.T, do func(), flags ...string) []byte {
	t.Helper()
	var data bytes.Buffer
	var said messages
	cmd := exec.Command("weir", append([]string{"trace", fmt.Sprintf("pid:%d", os.Getpid()), "--for", "10m", "--json"}, flags...)...)
	cmd.Stdout, cmd.Stderr = &data, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	lab.Await(t, time.Minute, "weir to trace", func() bool { return said.has("tracing pid:") || len(ended) > 0 })
	if len(ended) == 0 {
		do()
		if err := cmd.Process.Signal(unix.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatalf("weir trace: %v\n%s", err, &said)
	}
	return data.Bytes()
}

// Each operation counts in the sums of its file. With a threshold that all exceed, the
// slowest are listed with their file's path.
func TestSlowAndFiles(t *testing.T) {
	needTrace(t, lab.FS("ext4"))
	const writes, block, every = 1100, 4096, 40
	file, err := os.Create(filepath.Join(lab.Disk(t, lab.FS("ext4")).Dir, "traced"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := traceUntil(t, func() {
		for i := range writes {
			if _, err := file.Write(make([]byte, block)); err != nil {
				t.Fatal(err)
			}
			if i%every == every-1 {
				if err := file.Sync(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}, "--ops", "write,fsync", "--slower", "1ns", "--files")
	type operations struct {
		File, Kind   string
		Count, Bytes int
		PID          int
		Took         float64            `json:"took_us"`
		Split        map[string]float64 `json:"split_seconds"`
	}
	var doc struct {
		Files, Slow []operations
		Count       int `json:"slow_count"`
		Lost        map[string]uint64
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, want := range []operations{{Kind: "write", Count: writes, Bytes: writes * block}, {Kind: "fsync", Count: writes / every}} {
		i := slices.IndexFunc(doc.Files, func(o operations) bool { return o.File == file.Name() && o.Kind == want.Kind })
		if i < 0 || doc.Files[i].Count > want.Count || doc.Files[i].Count < fewest(want.Count, doc.Lost) ||
			doc.Files[i].Bytes > doc.Files[i].Count*want.Bytes/want.Count || // the end of one that is counted can be left out as well
			doc.Files[i].Bytes < fewest(doc.Files[i].Count, doc.Lost)*want.Bytes/want.Count {
			t.Errorf("%ss of %s: want %d of %d bytes in %+v, lost %v", want.Kind, file.Name(), want.Count, want.Bytes, doc.Files, doc.Lost)
		}
	}
	made := writes + writes/every
	if all := doc.Count + int(doc.Lost["events"]); all < fewest(made, doc.Lost) {
		t.Errorf("%d operations were slow, want %d or more", all, made)
	}
	if !slices.IsSortedFunc(doc.Slow, func(a, b operations) int { return cmp.Compare(b.Took, a.Took) }) {
		t.Error("the slowest are not first")
	}
	if len(doc.Slow) == 0 || len(doc.Slow) > 1000 || len(doc.Slow) < min(doc.Count, 1000) {
		t.Errorf("%d of %d are listed", len(doc.Slow), doc.Count)
	}
	found := 0
	for _, o := range doc.Slow {
		if o.PID == os.Getpid() && o.File == file.Name() {
			found++
		}
		sum := 0.0
		for _, seconds := range o.Split {
			sum += seconds
		}
		if took := o.Took / 1e6; sum < 0.95*took || sum > 1.05*took {
			lab.Measures(t)
			t.Errorf("%s took %v s, and its parts %v s", o.Kind, took, sum)
		}
	}
	if found < len(doc.Slow)/2 {
		t.Errorf("%d of %d are of this process's file", found, len(doc.Slow))
	}
}
