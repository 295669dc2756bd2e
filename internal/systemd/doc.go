// Package systemd speaks to the service manager over D-Bus: it starts transient
// scopes, finds the unit that owns a cgroup, and sets a unit's I/O limits
// (org.freedesktop.systemd1(5), systemd.resource-control(5)). Where systemd is PID 1
// it owns the cgroups of its units: a rule written into their files behind its back
// is lost when it next applies the unit's settings.
//
// It refuses to guess: a host whose PID 1 is not systemd has no connection.
package systemd
