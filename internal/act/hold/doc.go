// Package hold puts rules into force. It chooses who writes them (systemd for its units, weir
// for every other group), writes them, reads them back, and undoes half-done changes.
//
// Whether a rule holds a path of I/O is the question of package place.
//
// A rule is one write(2) of one line. cgroup v1 has a file for each rate, so a change has several
// rules there. After each write weir reads the value back. If it differs, weir restores the old one
// only when the kernel derived the new one from weir's write. The record of a request to the pacer
// says how the pacer counted the group before. The weir that undoes the rule has the pacer hold
// what the rules say then, counted as before.
//
// Lock holds a lock on one byte of a file in /run/weir that only root can open (fcntl(2)). The
// kernel drops the lock when weir dies. The next weir that gets the lock first undoes what a dead
// weir left half done there.
//
// For systemd's units on v2, weir calls SetUnitProperties. Below a device on a single disk, such as
// a logical volume, systemd would limit the disk. weir writes the rules of such devices itself
// (Plan.Past), and has systemd leave the unit the io controller. systemd keeps an
// entry for each name of a device, and writes each as a whole line of io.max. Its versions differ
// in which name they write last. So the package reads the rules in force and systemd's entries, and
// sets all four rates under every name that systemd has. Then it removes all names but one from
// systemd's drop-ins, and has systemd reload them. Names in the unit's own files stay, with the
// same rates. All names stay if systemd keeps a limit over boots and the change is until the next boot.
package hold
