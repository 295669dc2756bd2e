package watch

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cgroupfs/cgrouptest"
)

// BenchmarkSample reads 2,000 groups, 50 below each of 40, of which some have written since the
// reading before. The files are plain ones: the kernel's take longer to read.
func BenchmarkSample(b *testing.B) {
	const slices, each = 40, 50
	for _, moving := range []int{0, 1, slices} { // of the 40, each with its 50
		b.Run(fmt.Sprintf("moving=%d", moving*(each+1)), func(b *testing.B) {
			files := map[string]string{}
			name := func(s, g int) string { return fmt.Sprintf("%s/s%d.slice/g%d/", cgrouptest.V2Dir, s, g) }
			for s := range slices {
				for g := range each {
					files[name(s, g)+"io.stat"] = line(0)
					files[name(s, g)+"io.max"] = "8:0 rbps=max wbps=1000000 riops=max wiops=max\n"
					files[name(s, g)+"io.pressure"] = pressureLine + "0\n"
				}
				files[fmt.Sprintf("%s/s%d.slice/io.stat", cgrouptest.V2Dir, s)] = line(0)
				files[fmt.Sprintf("%s/s%d.slice/io.max", cgrouptest.V2Dir, s)] = ""
			}
			h := cgrouptest.New(b, cgroupfs.V2, files)
			now := time.Unix(1e9, 0)
			w := New(Options{Root: h.Root, IO: h.IO, Memory: h.IO, Details: 200, Now: func() time.Time { return now }})
			defer w.Close()
			if s, err := w.Sample(b.Context()); err != nil || s.Watched != slices*(each+1) {
				b.Fatalf("%+v, %v", s, err)
			}
			round, used := 0, time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				round++
				for s := range moving {
					h.Write(fmt.Sprintf("%s/s%d.slice/io.stat", cgrouptest.V2Dir, s), line(round))
					for g := range each {
						h.Write(name(s, g)+"io.stat", line(round))
					}
				}
				now = now.Add(time.Second)
				b.StartTimer()
				began := processor(b)
				if _, err := w.Sample(b.Context()); err != nil {
					b.Fatal(err)
				}
				used += processor(b) - began
			}
			b.ReportMetric(used.Seconds()*1000/float64(round), "cpu-ms/op")
		})
	}
}

// processor is the processor time that the process has used: unlike the time on the clock it does
// not depend on what runs beside.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func line(n int) string {
	return fmt.Sprintf("8:0 rbytes=123456789 wbytes=%d rios=1234 wios=5678 dbytes=0 dios=0\n", 1000*n)
}
