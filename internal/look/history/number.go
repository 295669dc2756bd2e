package history

import "math/bits"

// A value is kept in 14 bits, which a uvarint spells in two bytes at most: 5 of an exponent and 9
// of a fraction, as a floating-point number has them. Up to 511 it is exact, and then within 0.1 %.
const (
	fractionBits = 9
	exponentMost = 1<<5 - 1
	exactMost    = 1<<fractionBits - 1
)

// pack rounds a value. What is too large, 10¹² and more, becomes the largest.
func pack(v uint64) uint64 {
	if v <= exactMost {
		return v
	}
	shift := bits.Len64(v) - fractionBits - 1
	if shift > 0 {
		half := uint64(1) << (shift - 1)
		if v > ^uint64(0)-half {
			return exponentMost<<fractionBits | exactMost
		}
		v += half
		shift = bits.Len64(v) - fractionBits - 1 // it may have grown to the next power of two
	}
	if shift >= exponentMost {
		return exponentMost<<fractionBits | exactMost
	}
	return uint64(shift+1)<<fractionBits | v>>shift&exactMost
}

// packedMost is the largest that pack returns.
const packedMost = exponentMost<<fractionBits | exactMost

func unpack(p uint64) uint64 {
	exponent, fraction := p>>fractionBits, p&exactMost
	if exponent == 0 {
		return fraction
	}
	return (1<<fractionBits | fraction) << (exponent - 1)
}
