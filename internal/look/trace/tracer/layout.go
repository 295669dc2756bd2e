package tracer

import "github.com/weir-io/weir/internal/look/trace"

// What bpf/trace.h counts; the fields are its.
type (
	cell struct {
		Count, Bytes, Errors, Most uint64
		Parts                      trace.Split
	}
	behind struct {
		Count, Bytes, Throttle, Queue, Device, ThrottleMost, TotalMost uint64
	}
	lost struct {
		Tasks, Bios, Events, Stacks, Files uint64
	}
	operation struct { // struct op of bpf/trace_state.h
		Begin, Mark, Ended, Bytes uint64
		File, Inode               uint64
		FD, TID                   uint32
		Kind, OnDisk, Off         uint8
		Reclaim, Failed, Mixed    uint8
		Asked, Chained            uint8
		Entered, Unsure           uint8
		Number                    uint16
		_                         [4]uint8
		Regs                      uint64
		Parts                     trace.Split
		Woken, Request, Group     uint64
	}
	unseen struct {
		Count, NS uint64
	}
	reclaimed struct {
		Calls, Pages uint64
	}
	slowEvent struct {
		Began, Took, Bytes, Inode uint64
		Device, TID, TGID, Kind   uint32
		Parts                     trace.Split
		Comm                      [16]byte
		Name                      [64]byte
	}
	fileKey struct {
		Inode        uint64
		Device, Kind uint32
	}
	fileSum struct {
		Count, Bytes uint64
		Parts        trace.Split
		Most         uint64
		TGID, FD     uint32
		Name         [64]byte
	}
)
