// Package limit holds weir's value types for disk I/O limits: a rate with its
// three states, and a limit of four rates as the kernel's io.max knows them
// (rbps, wbps, riops, wiops; Documentation/admin-guide/cgroup-v2.rst, "IO
// Interface Files"). It parses and prints them. It is pure: it opens no file and
// knows no device, no cgroup and no mechanism.
package limit
