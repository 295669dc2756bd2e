package metrics

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/internal/act/quota"
)

// A disk that does not answer keeps no scrape for longer than a moment, and is asked once.
func TestQuotasOfAHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answers := make(chan struct{})
		q := &Quotas{List: func(context.Context) ([]quota.Status, error) {
			asked.Add(1)
			<-answers
			return make([]quota.Status, 1), nil
		}}
		began := time.Now()
		for range 3 {
			if got := q.now(t.Context()); got != nil {
				t.Errorf("%v before the disk has answered", got)
			}
		}
		if took := time.Since(began); took != 3*quotasPatience || asked.Load() != 1 {
			t.Errorf("three scrapes waited for %v and asked %d times", took, asked.Load())
		}
		close(answers)
		synctest.Wait()
		if got := q.now(t.Context()); len(got) != 1 || asked.Load() != 1 {
			t.Errorf("%v, asked %d times", got, asked.Load())
		}
	})
}
