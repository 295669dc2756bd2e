package stack

import (
	"testing"
	"unsafe"
)

// A stack that has grown is not copied when it is used.
func TestGrow(t *testing.T) {
	moves := func(before func()) bool {
		moved := make(chan bool)
		go func() {
			before()
			moved <- movesWhenDeep()
		}()
		return <-moved
	}
	if !moves(func() {}) {
		t.Error("a new stack has room already, so that this test shows nothing")
	}
	if moves(Grow) {
		t.Error("a stack that has grown is copied")
	}
}

//go:noinline
func movesWhenDeep() bool {
	var here byte
	at := uintptr(unsafe.Pointer(&here))
	deep(room / 1024 / 2)
	return uintptr(unsafe.Pointer(&here)) != at
}

// deep uses a KiB of the stack for each call, and a little more.
//
//go:noinline
func deep(calls int) byte {
	var frame [1024]byte
	if calls > 0 {
		frame[calls] = deep(calls - 1)
	}
	return frame[calls]
}
