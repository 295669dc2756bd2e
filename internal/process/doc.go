// Package process reads what the kernel tells of processes in /proc: who they are, and
// what I/O they and their ended children have done.
package process
