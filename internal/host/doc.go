// Package host opens one machine: its cgroup hierarchies, weir's records, the daemons that know
// targets, and the mechanisms that limit them. Every front end works on a Host.
//
// The package prints nothing and reads no flags and no environment variables. A front end passes
// what it read there as Options. Opening a host changes nothing; Sweep cleans up after dead weirs.
package host
