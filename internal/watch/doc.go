// Package watch reads what is in force and what happens: the groups of a hierarchy
// that have rules, and what they do per second, from two readings of the
// controller's own counters.
//
// It only reads.
package watch
