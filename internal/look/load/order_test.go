package load

import "testing"

func TestOrderVisitsEachBlockOnceARound(t *testing.T) {
	for _, blocks := range []int64{1, 2, 3, 5, 64, 100, 1023, 1025} {
		for _, random := range []bool{false, true} {
			o := newOrder(Job{Block: 512, Size: blocks*512 + 511, Random: random})
			var rounds [2][]int64
			for round := range rounds {
				seen := map[int64]bool{}
				for i := range blocks {
					at := o.at(uint64(int64(round)*blocks + i))
					if at%512 != 0 || at < 0 || at >= blocks*512 || seen[at] {
						t.Fatalf("%d blocks, random %t, round %d: %d again, or nowhere", blocks, random, round, at)
					}
					seen[at] = true
					rounds[round] = append(rounds[round], at)
				}
			}
			if random && blocks >= 64 {
				if same := matches(rounds[0], rounds[1]); same > int(blocks/10) {
					t.Errorf("%d blocks: %d of them in the same place in the second round", blocks, same)
				}
				if next := successors(rounds[0]); next > int(blocks/10) {
					t.Errorf("%d blocks: %d follow the one before them in the file", blocks, next)
				}
			}
		}
	}
}

func matches(a, b []int64) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

func successors(a []int64) (n int) {
	for i := range a[1:] {
		if a[i+1] == a[i]+512 {
			n++
		}
	}
	return n
}
