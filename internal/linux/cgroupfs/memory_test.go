package cgroupfs

import "testing"

func TestMemory(t *testing.T) {
	g := groupOf(t, v2(t, map[string]string{"x/memory.max": "67108864\n", "x/memory.high": "max\n",
		"x/memory.current": "8192\n", "x/memory.stat": "anon 1\nfile_dirty 4096\nfile_writeback 8192\ninactive_file 16384\nactive_file 4096\n", "y/cgroup.procs": ""}), "/x")
	m, there, err := g.Memory()
	if want := (Memory{Max: 64 << 20, Dirty: 12288, Writeback: 8192, Clean: 8192}); err != nil || !there || m != want {
		t.Errorf("%+v, %t, %v; want %+v", m, there, err, want)
	}
	if used, err := g.MemoryUsed(); used != 8192 || err != nil {
		t.Errorf("%d used, %v", used, err)
	}
	if _, there, err := groupOf(t, v2(t, map[string]string{"y/cgroup.procs": ""}), "/y").Memory(); there || err != nil {
		t.Errorf("without the controller: %t, %v", there, err)
	}
	if n, err := bound("9223372036854771712\n"); n != 0 || err != nil {
		t.Errorf("v1's no limit is %d, %v", n, err)
	}
}

func TestText(t *testing.T) {
	g := groupOf(t, v2(t, map[string]string{"x/io.latency": "8:0 target=10\n"}), "/x")
	if text, there, err := g.Text("io.latency"); text != "8:0 target=10\n" || !there || err != nil {
		t.Errorf("%q, %t, %v", text, there, err)
	}
	if text, there, err := g.Text("io.weight"); text != "" || there || err != nil {
		t.Errorf("%q, %t, %v", text, there, err)
	}
}
