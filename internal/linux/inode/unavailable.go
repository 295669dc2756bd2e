package inode

import "github.com/weir-io/weir/internal/linux/bpf"

const (
	reading   = "read the owners of inodes"
	kernelMin = "5.8" // the first with iterators over open files
)

// hindrance looks for what makes it useless to ask the kernel for owners.
func hindrance() error { return bpf.Hindrance("/", reading, kernelMin) }

// refused explains why the program was not loaded.
func refused(err error) error {
	e := bpf.Refusal(reading, kernelMin, err)
	if bpf.Lacking(err) {
		e.Reason = "the kernel has no BPF iterator over open files (" + err.Error() + ")"
	}
	return e
}
