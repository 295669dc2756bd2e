// Package tracer traces with BPF programs (bpf/trace.bpf.c) for package trace, whose document says
// what is measured. The library that loads BPF is too heavy for weir, so weird has this package,
// and a trace.Tracer asks a helper.
package tracer
