// Package dropin writes the text of systemd's unit files with which limits and volumes come back:
//
//   - a drop-in with which systemd runs weir at each start of a unit, to set its limits
//     (systemd.service(5), ExecStartPost=). It is for cgroup v1, where systemd stores no limits.
//   - a drop-in for a scope on cgroup v2, because systemd writes no file for a scope that outlives it.
//   - the units with which systemd mounts volumes at boot.
//
// A drop-in holds what weir needs to know to change it. The package refuses to edit what others
// wrote: each file is weir's own.
package dropin
