// Package systemd talks to the service manager over D-Bus: it starts transient scopes, finds
// the unit that owns a cgroup, and sets a unit's I/O limits (org.freedesktop.systemd1(5),
// systemd.resource-control(5)). Where systemd is PID 1 it owns the cgroups of its units: a rule
// that somebody else writes into their files is lost when systemd next applies the unit's
// settings.
//
// On a host whose PID 1 is not systemd there is no connection.
package systemd
