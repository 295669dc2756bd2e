package load

import "math/bits"

// An order says where each operation is: in the file's order, or scattered.
type order struct {
	blocks uint64 // in the file
	block  int64  // bytes
	mask   uint64 // of the smallest power of two that holds all blocks; 0: not scattered
	shift  int
}

func newOrder(j Job) order {
	o := order{blocks: uint64(j.Size) / uint64(j.Block), block: int64(j.Block)}
	if width := bits.Len64(o.blocks - 1); j.Random && width > 0 {
		o.mask, o.shift = 1<<width-1, (width+1)/2
	}
	return o
}

// at returns the offset of the n-th operation.
func (o order) at(n uint64) int64 {
	i := n % o.blocks
	if o.mask != 0 {
		i = o.scatter(i, n/o.blocks)
	}
	return int64(i) * o.block
}

// scatter permutes the blocks, each round in another way: multiplying by an odd number
// and folding the upper half onto the lower can both be undone, so no two blocks meet.
// What lands beyond the last block is sent on until it lands on one: it was on a cycle
// that leads back to where it came from.
func (o order) scatter(i, round uint64) uint64 {
	for {
		i = (i + round*0x9e3779b97f4a7c15) & o.mask
		for range 2 {
			i = i * 0xd1342543de82ef95 & o.mask
			i ^= i >> o.shift
		}
		if i < o.blocks {
			return i
		}
	}
}
