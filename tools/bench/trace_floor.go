package main

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// emptyHooks are programs that do nothing where system calls begin and end: what the
// kernel itself takes of every call for a trace that begins there.
type emptyHooks []link.Link

func (h *emptyHooks) attach() error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.RawTracepoint, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer program.Close() // the links hold it
	for _, name := range []string{"sys_enter", "sys_exit"} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program})
		if err != nil {
			return errors.Join(err, h.end())
		}
		*h = append(*h, l)
	}
	return nil
}

func (h emptyHooks) end() (err error) {
	for _, l := range h {
		err = errors.Join(err, l.Close())
	}
	return err
}
