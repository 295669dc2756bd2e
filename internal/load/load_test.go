package load

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func TestArgsParse(t *testing.T) {
	for _, j := range []Job{
		{Path: Direct, File: "/a b/c", Block: 4096, Size: 1 << 30, Warm: 300 * time.Millisecond, For: 5 * time.Second},
		{Path: Sync, Read: true, File: "-", Block: 1, Size: 1, For: time.Nanosecond},
	} {
		if got, err := Parse(j.Args()); err != nil || !reflect.DeepEqual(got, j) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", j.Args(), got, err, j)
		}
	}
	good := Job{Path: Direct, File: "f", Block: 1, Size: 1, For: 1}.Args()
	for i := 3; i < len(good); i++ {
		bad := append([]string{}, good...)
		bad[i] = "x"
		if j, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %+v", bad, j)
		}
	}
	if j, err := Parse(good[1:]); err == nil {
		t.Errorf("Parse(%q) = %+v", good[1:], j)
	}
}

func TestRunCountsWhatItDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load")
	for _, read := range []bool{false, true} {
		j := Job{Path: Buffered, Read: read, File: file, Block: 4096, Size: 16 * 4096, For: 20 * time.Millisecond}
		r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ops == 0 || r.Bytes != 4096*r.Ops || r.Elapsed < j.For {
			t.Errorf("read %t: %+v", read, r)
		}
		if r.BytesPerSec() != 4096*r.OpsPerSec() {
			t.Errorf("%v bytes/s, %v ops/s", r.BytesPerSec(), r.OpsPerSec())
		}
	}
	// Round and round: the file is no larger than it was to be.
	if st, err := os.Stat(file); err != nil || st.Size() > 16*4096 {
		t.Errorf("the file: %v, %v", st, err)
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]Job{
		"no block":        {Path: Buffered, File: link + "x", Size: 1, For: 1},
		"a small file":    {Path: Buffered, File: link + "x", Block: 2, Size: 1, For: 1},
		"no time":         {Path: Buffered, File: link + "x", Block: 1, Size: 1},
		"another path":    {Path: "mapped", File: link + "x", Block: 1, Size: 1, For: 1},
		"nothing to read": {Path: Buffered, Read: true, File: link + "x", Block: 1, Size: 1, For: 1},
		"a link":          {Path: Buffered, File: link, Block: 1, Size: 1, For: 1},
	} {
		if r, err := Run(t.Context(), j); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left: %v, %v", names, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, Job{Path: Buffered, File: filepath.Join(t.TempDir(), "load"), Block: 512, Size: 512, For: time.Hour})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run = %v", err)
	}
}
