// Package trace_test makes slow I/O on purpose, for a known cause, and has weir trace
// say where its time went without telling it.
package trace_test
