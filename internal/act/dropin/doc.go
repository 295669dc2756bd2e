// Package dropin makes the drop-in by which systemd has weir set a unit's limits at each
// of its starts (systemd.service(5), ExecStartPost=). It is for cgroup v1, where systemd
// keeps no limits itself; and for scopes on v2, for which it writes no file of its own that
// outlives them. And the units by which systemd brings volumes up at boot. It refuses to edit what others wrote: each file is weir's own,
// and a drop-in holds what weir needs to know to change it.
package dropin
