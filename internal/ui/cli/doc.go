// Package cli holds what weir's verbs share with the person at the terminal: flags
// for limits, exit codes, messages, tables, JSON and progress. Data goes to stdout,
// messages and progress to stderr, and progress only to a terminal.
//
// It knows no cgroup and no kernel: it prints what others found.
package cli
