// Package environ describes the environment a lab test runs in: which lane and
// kernel, how cgroups are mounted, which disks are there. The guest's init (or
// the native lane) writes the description to a file and names the file in
// WEIR_LAB; package lab reads it in each test.
//
// The description says what was promised (from the kernel's command line) and
// what was found (from the kernel itself), so that a test can compare the two.
package environ
