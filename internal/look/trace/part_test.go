package trace

import "testing"

// The names of parts are in documents, and stay as they are (docs/json.md).
func TestPartsAreNamed(t *testing.T) {
	for part, want := range map[Part]string{CPU: "cpu", RunQueue: "run_queue", MemcgReclaim: "memcg_reclaim", DirectReclaim: "direct_reclaim", DirtyThrottle: "dirty_throttling",
		BlkThrottle: "blk_throttle", Queue: "block_queue", DeviceTime: "device", Journal: "journal_locks", Frozen: "frozen", Uring: "io_uring", OtherIO: "other_io", Other: "other",
		Parts: "part 13", -1: "part -1"} {
		if part.String() != want {
			t.Errorf("part %d is %s, want %s", int(part), part, want)
		}
	}
	if DeviceTime.Title() != "device" || Queue.Title() != "block queue" || CPU.Title() != "page cache, CPU" {
		t.Errorf("%s, %s, %s", DeviceTime.Title(), Queue.Title(), CPU.Title())
	}
}
