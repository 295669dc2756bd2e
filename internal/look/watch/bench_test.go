package watch

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
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
				used += sampled(b, w)
			}
			b.ReportMetric(used.Seconds()*1000/float64(round), "cpu-ms/op")
		})
	}
}

// BenchmarkSampleV1 reads 2,000 limited groups of v1, 50 below each of 40, of which some have written
// since the reading before.
func BenchmarkSampleV1(b *testing.B) {
	const slices, each = 40, 50
	for _, moving := range []int{0, 20, slices * each} {
		b.Run(fmt.Sprintf("moving=%d", moving), func(b *testing.B) {
			files := map[string]string{}
			name := func(i int) string {
				return fmt.Sprintf("%s/s%d.slice/g%d.service/", cgrouptest.V1Dir, i/each, i)
			}
			const bytesFile, opsFile = "blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"
			for i := range slices * each {
				files[name(i)+bytesFile], files[name(i)+opsFile] = lineV1(0), lineV1(0)
				for _, r := range []string{"read_bps", "read_iops", "write_iops"} {
					files[name(i)+"blkio.throttle."+r+"_device"] = ""
				}
				files[name(i)+"blkio.throttle.write_bps_device"] = "8:0 1000000\n"
			}
			for s := range slices {
				files[fmt.Sprintf("%s/s%d.slice/%s", cgrouptest.V1Dir, s, bytesFile)] = lineV1(0)
				files[fmt.Sprintf("%s/s%d.slice/%s", cgrouptest.V1Dir, s, opsFile)] = lineV1(0)
			}
			files[cgrouptest.V1Dir+"/"+bytesFile], files[cgrouptest.V1Dir+"/"+opsFile] = lineV1(0), lineV1(0)
			h := cgrouptest.New(b, cgroupfs.V1, files)
			now := time.Unix(1e9, 0)
			w := New(Options{Root: h.Root, IO: h.IO, Details: 200, Now: func() time.Time { return now }})
			defer w.Close()
			if s, err := w.Sample(b.Context()); err != nil || s.Watched != slices*(each+1)+1 {
				b.Fatalf("%+v, %v", s, err)
			}
			round, used := 0, time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				round++
				for i := range moving {
					at := name(i * slices * each / moving)
					h.Write(at+bytesFile, lineV1(4096*round))
					h.Write(at+opsFile, lineV1(round))
				}
				now = now.Add(time.Second)
				b.StartTimer()
				used += sampled(b, w)
			}
			b.ReportMetric(used.Seconds()*1000/float64(round), "cpu-ms/op")
		})
	}
}

// BenchmarkFollowedV1 reads the same groups as weir top does: the kernel tells of groups and rules, and adds up those of
// a slice.
func BenchmarkFollowedV1(b *testing.B) {
	const slices, each, moving = 40, 50, 20
	const bytesFile, opsFile = "blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"
	files := map[string]string{}
	slice := func(i int) string { return fmt.Sprintf("%s/s%d.slice/", cgrouptest.V1Dir, i/each) }
	name := func(i int) string { return fmt.Sprintf("%sg%d.service/", slice(i), i) }
	put := func(dir string, n int) { files[dir+bytesFile], files[dir+opsFile] = lineV1(n), lineV1(n) }
	put(cgrouptest.V1Dir+"/", 0)
	files[cgrouptest.V1Dir+"/"+bytesFile+"_recursive"] = lineV1(0)
	for i := range slices * each {
		put(name(i), 0)
		put(slice(i), 0)
		files[slice(i)+bytesFile+"_recursive"] = lineV1(0)
		for _, r := range []string{"read_bps", "read_iops", "write_iops"} {
			files[name(i)+"blkio.throttle."+r+"_device"] = ""
		}
		files[name(i)+"blkio.throttle.write_bps_device"] = "8:0 1000000\n"
	}
	h := cgrouptest.New(b, cgroupfs.V1, files)
	now := time.Unix(1e9, 0)
	w := New(Options{Root: h.Root, IO: h.IO, Details: 200, Follow: true, Now: func() time.Time { return now }})
	defer w.Close()
	for range 60 { // who has been read once is read at other times than the others after that
		if s, err := w.Sample(b.Context()); err != nil || s.Watched != slices*(each+1)+1 {
			b.Fatalf("%+v, %v", s, err)
		}
		now = now.Add(time.Second)
	}
	round, used := 0, time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		round++
		for m := range moving {
			at := m * slices * each / moving
			h.Write(name(at)+bytesFile, lineV1(4096*round))
			h.Write(name(at)+opsFile, lineV1(round))
			h.Write(slice(at)+bytesFile+"_recursive", lineV1(4096*round))
		}
		h.Write(cgrouptest.V1Dir+"/"+bytesFile+"_recursive", lineV1(4096*round*moving))
		now = now.Add(time.Second)
		b.StartTimer()
		used += sampled(b, w)
	}
	b.ReportMetric(used.Seconds()*1000/float64(round), "cpu-ms/op")
}

func lineV1(n int) string {
	return fmt.Sprintf("8:0 Read 0\n8:0 Write %d\n8:0 Sync %d\n8:0 Async 0\n8:0 Discard 0\n8:0 Total %d\nTotal %d\n", n, n, n, n)
}

// sampled is the processor time that a sample takes.
func sampled(b *testing.B, w *Watcher) time.Duration {
	b.Helper()
	began := processor(b)
	if _, err := w.Sample(b.Context()); err != nil {
		b.Fatal(err)
	}
	return processor(b) - began
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
