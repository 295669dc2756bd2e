// Package prove_test runs weir prove on real kernels, where it must come to the verdict
// that is true there, and leave nothing.
package prove_test
