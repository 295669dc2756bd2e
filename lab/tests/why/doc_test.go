// Package why_test makes on real kernels what weir why explains: for each finding a
// test produces the condition, has weir why name it, does what it offers, and has it
// say that the finding is gone. Where the claim is about what the kernel holds, the
// test measures it as well.
package why_test
