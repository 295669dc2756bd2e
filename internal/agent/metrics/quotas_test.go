package metrics

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/look/watch"
)

// Each quota of a mounted file system has what it stores beside its limits, whatever names it has, and
// also where another file system cannot be read. They are not read at each scrape.
func TestQuotas(t *testing.T) {
	asked := 0
	o := Options{Feed: NewFeed(&still{s: &watch.Snapshot{}}, 0), Quotas: &Quotas{List: func(context.Context) ([]quota.Status, error) {
		asked++
		return []quota.Status{
			{Project: 9, Target: "docker:web", Mount: "/srv", FSType: "xfs", Bounds: quota.Bounds{Bytes: 100}, Usage: quota.Usage{Bytes: 7, Files: 3}},
			{Project: 10, Target: "/srv/a\xff", Mount: "/srv", FSType: "xfs", Bounds: quota.Bounds{Files: 5}, Usage: quota.Usage{Files: 5}},
			{Project: 10, Target: "twice", Mount: "/srv", FSType: "xfs"},
			{Project: 10, Mount: "/data", FSType: "ext4"},
			{Project: 11, Mount: "/away", Bounds: quota.Bounds{Bytes: 100}},
		}, errors.New("read /dev/sdz: input/output error")
	}}}
	for range 3 {
		_, text := get(t, o.Handler(), Route)
		got := parse(t, text)
		maps.DeleteFunc(got, func(series string, _ float64) bool { return !strings.HasPrefix(series, "weir_quota_") })
		web, files, other := "{mount=/srv,project=9,target=docker:web}", `{mount=/srv,project=10,target=/srv/a\xff}`, "{mount=/data,project=10,target=}"
		want := page{"weir_quota_used_bytes" + web: 7, "weir_quota_used_files" + web: 3, "weir_quota_limit_bytes" + web: 100,
			"weir_quota_used_bytes" + files: 0, "weir_quota_used_files" + files: 5, "weir_quota_limit_files" + files: 5,
			"weir_quota_used_bytes" + other: 0, "weir_quota_used_files" + other: 0}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if asked != 1 {
		t.Errorf("read %d times at once", asked)
	}
}
