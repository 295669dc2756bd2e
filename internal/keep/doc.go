// Package keep has limits kept over restarts. Who keeps a limit depends on the target: systemd, a
// drop-in that runs weir, the drop-in of a container's scope, the container's engine, libvirt, or
// weir's own record. A Keeper is one of these; callers do not ask which.
//
// A Keeper returns actions. Each describes itself for a dry run and does what it describes, so
// that both agree.
//
// Limits that are kept over boots name the device by a link in /dev/disk/by-id or by a mount point.
// Each way of saving a limit removes what another way saved before.
//
// systemd itself writes what it keeps over boots (SetUnitProperties, in its own drop-ins). weir
// removes only those drop-ins that no longer set anything. weir writes its own drop-in (v1) beside
// its final place, syncs it and renames it; the record of the change has the former content.
//
// weir's own records (Saved, in /var/lib/weir/limits) are for containers whose limit neither their engine
// nor a scope keeps: one file for each, under its permanent name (the whole id). weir restore asks the
// daemon where the limit was set (DOCKER_HOST and similar variables are saved too). It sets the saved
// limits of running containers, and removes nothing: an owner may know a container again once its disk is
// mounted. weir clear removes saved limits, by the saved name if the owner does not know the container.
// A damaged record is told of, and keeps nobody from setting limits or clearing them.
//
// Docker makes the scope of a container anew at each start, with the same name. weir saves the
// limit in a drop-in of that scope, which systemd reads then. The drop-in sorts before those that
// systemd makes until the scope ends. weir removes drop-ins of removed containers when it makes the
// next one.
//
// If Docker can change the limits of an existing container (API 1.55), weir tells Docker before it
// writes a rule: when Docker is told, runc writes the limits that the container was created with.
package keep
