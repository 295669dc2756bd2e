// Package escape_test measures what a group writes past its limit on cgroup v2: what it
// makes dirty in files whose writeback is charged to another group.
package escape_test
