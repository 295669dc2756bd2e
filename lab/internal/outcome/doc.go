// Package outcome turns what guests bring back into numbers and a verdict: which
// tests passed, failed or were skipped where, and which never ran anywhere. It is
// pure: test2json's events come in, a table goes out.
package outcome
