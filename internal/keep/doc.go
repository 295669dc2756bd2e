// Package keep has limits kept over restarts. Who keeps a limit depends on the target: systemd, a
// drop-in that runs weir, the drop-in of a container's scope, the container's engine, libvirt, or
// weir's own record. A Keeper is one of these; callers do not ask which.
//
// A Keeper returns actions. Each describes itself for a dry run and does what it describes, so
// that both agree.
package keep
