// Package process reads what the kernel reports about processes in /proc, and what I/O they and
// their ended children have done.
package process
