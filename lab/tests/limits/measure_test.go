package limits_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
)

const (
	warm   = 500 * time.Millisecond // the throttle's first slices and their burst
	window = 4 * time.Second
)

// weir runs the program and returns its standard output; it fails the test if weir does.
func weir(t *testing.T, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "weir", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// limited does a job under weir run with limits, in a group of its own, and returns
// what the job counted.
func limited(t *testing.T, limits []string, job load.Job) load.Result {
	t.Helper()
	args := append([]string{"run", "--quiet"}, limits...)
	args = append(args, "--", "weir", "__load")
	r, err := load.Decode(bytes.NewReader(weir(t, append(args, job.Args()...)...)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// filled makes a file of size bytes that is on the disk and not in the page cache's
// dirty pages.
func filled(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte("weir"), 1<<18)
	for n := int64(0); n < size; n += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// blockFor is a size of operation of which a slice of 100 ms holds several.
func blockFor(bytesPerSec int) int {
	block := 4 << 10
	for block < 256<<10 && block*2*40 <= bytesPerSec {
		block *= 2
	}
	return block
}

func fileIn(t *testing.T, dir, name string) string {
	t.Helper()
	return filepath.Join(dir, strings.ReplaceAll(fmt.Sprintf("%s-%s", strings.ReplaceAll(t.Name(), "/", "-"), name), " ", "-"))
}
