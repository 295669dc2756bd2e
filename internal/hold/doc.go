// Package hold puts rules into force: it chooses who writes them (systemd for its
// units, weir for every other group), writes them, reads them back, and undoes what
// was half done. It also names the mechanism by which the kernel will hold each path
// of an I/O under a rule.
//
// It refuses to call a rule held that nothing holds: on cgroup v1 a buffered write
// is charged to the root group, and hold says so.
package hold
