package limiting

import (
	"fmt"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
)

// BenchmarkDescribe begins to watch 2,000 limited groups: each is named, and it is decided what is
// expected to hold its limit.
func BenchmarkDescribe(b *testing.B) {
	files := map[string]string{}
	for i := range 2000 {
		dir := fmt.Sprintf("sys/fs/cgroup/many/g%d/", i)
		files[dir+"io.max"], files[dir+"io.stat"], files[dir+"cgroup.procs"] = "254:0 rbps=max wbps=1000 riops=max wiops=max\n", "254:0 rbytes=1 wbytes=1 rios=1 wios=1\n", ""
	}
	files["sys/fs/cgroup/many/io.stat"], files["sys/fs/cgroup/many/io.max"] = "", ""
	m := Manager{hosttest.Open(b, "v2", files, host.Options{})}
	for b.Loop() {
		w, err := m.Watch(0, false)
		if err != nil {
			b.Fatal(err)
		}
		s, err := w.Sample(b.Context())
		if err != nil || len(s.Groups) < 2000 {
			b.Fatalf("%+v, %v", s, err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
