// Package stack gives a goroutine the stack that it will need at once. A stack starts with a few
// KiB. Each time that it is full the runtime copies it to one twice as large, for which it looks up
// where each function on it keeps its pointers. That is a twentieth of what weir set takes.
package stack

import "runtime"

// room is more than the deepest verb has on its stack, in bytes.
const room = 48 << 10

// Grow grows the calling goroutine's stack once. Memory is taken only for what is used of it. The
// runtime makes the stack smaller again if it collects garbage while most is unused.
func Grow() { grow(false) }

// grow has a frame of the size of the room, and does nothing with it: the runtime makes a place for
// the frame before the function begins.
//
//go:noinline
func grow(fill bool) {
	if fill {
		var frame [room]byte
		for i := range frame {
			frame[i] = byte(i)
		}
		runtime.KeepAlive(&frame)
	}
}
