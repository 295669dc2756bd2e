// Package systemd talks to the service manager over D-Bus: it starts transient scopes, finds
// the unit that owns a cgroup, and sets a unit's I/O limits (org.freedesktop.systemd1(5),
// systemd.resource-control(5)). Where systemd is PID 1 it owns the cgroups of its units: a rule
// that somebody else writes into their files is lost when systemd next applies the unit's
// settings.
//
// On a host whose PID 1 is not systemd there is no connection.
//
// On v1 systemd fills its blkio hierarchy when the first unit asks for accounting. It then moves
// every process to the group of its unit, out of groups that others made. When the last such unit
// stops, systemd moves all processes to the root group and removes all groups. So weir keeps a unit
// running that asks (Conn.Anchor): an empty slice in the slice concerned. Starting it moves
// processes once; package hold first records the processes in other groups, and then puts them and
// their children back.
//
// On v2 systemd disables the io controller for all groups of a slice when the last unit that needs
// it stops. This includes limited groups that others made there, such as a bundle of runc. The same
// empty slice prevents that. Groups further down need no such slice: the kernel does not let
// anybody disable a controller that a child group has enabled.
package systemd
