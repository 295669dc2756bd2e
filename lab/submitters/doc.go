// Package submitters asks the kernel which cgroups submit block I/O, by a BPF program
// at the entry of submit_bio. It needs the kernel's types, trampolines and maps: what
// works here works for any tracing program. A test that wants to know who did I/O may
// use it, since it is not weir's own code.
package submitters
