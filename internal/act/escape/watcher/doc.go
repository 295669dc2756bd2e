// Package watcher counts what escapes limits with BPF (bpf/escape.bpf.c): a Watcher is an
// escape.Watcher. The library that loads BPF is too heavy for weir, so weird has this package, and
// weir asks a helper.
package watcher
