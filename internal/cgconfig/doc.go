// Package cgconfig reads libcgroup's configuration (cgconfig.conf(5)), and says which disk I/O
// limits it gives to which groups. It does not guess: what is no such limit, or cannot be read
// as one, becomes a note with its line.
package cgconfig
