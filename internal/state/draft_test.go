package state

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Records that are for one boot are saved by several goroutines at once: a newborn group's, and that of
// whoever looks at the same target. Each save is one of these texts, and none is a mix of two.
func TestSavesOfOneRecordAtOnce(t *testing.T) {
	type saved struct{ Name, Text string }
	s := Store[saved]{Folder: Folder{Dir: filepath.Join(t.TempDir(), "top", "plans"), Mode: 0o700}, Name: func(v saved) string { return v.Name }, ForBoot: true}
	if err := s.Make(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	errs := make(chan error, 1)
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				err := s.Save(saved{"one", strings.Repeat("x", i*100)}, Ready)
				if err == nil {
					_, err = s.Read("one")
				}
				if err != nil {
					select {
					case errs <- fmt.Errorf("of %d: %w", i, err):
					default:
					}
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		t.Error(err)
	default:
	}
	if left, err := filepath.Glob(filepath.Join(s.Dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("%q is left, %v", left, err)
	}
}
