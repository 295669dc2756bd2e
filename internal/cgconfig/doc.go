// Package cgconfig reads libcgroup's configuration (cgconfig.conf(5)), and tells which
// disk I/O limits it gives to which groups. It refuses to guess: what is no such limit,
// or cannot be understood as one, becomes a note with its line.
package cgconfig
