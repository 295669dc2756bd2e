// Package full tests the full guests themselves: that systemd is there with the
// cgroup layout that the matrix promises, and that each daemon starts, answers
// and runs something.
package full
