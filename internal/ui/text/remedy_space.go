package text

import "github.com/weir-io/weir/internal/fault"

// remediesOfSpace are what a user of the command line can do about volumes, quotas and groups that
// weir makes.
func remediesOfSpace() map[fault.Do]string {
	return map[fault.Do]string{
		fault.VolumeUp:       "bring it up first: weir volume up %[1]s",
		fault.VolumeDown:     "take it down first: weir volume down %[1]s",
		fault.VolumeCreate:   "name the mount point itself, or create a volume there: weir volume create %[1]s --size SIZE",
		fault.VolumeAdopt:    "if it has a device of its own, limit it with weir volume adopt %[1]s",
		fault.VolumeForget:   "let weir forget the volume: weir volume forget %[1]s",
		fault.VolumeRemove:   "let weir forget the volume (weir volume forget %[1]s), and remove the file yourself",
		fault.VolumeMount:    "mount that disk, or let weir forget the volume: weir volume forget %[1]s",
		fault.AdoptedMount:   "mount it there, or let weir forget it: weir volume delete %[1]s",
		fault.AdoptedUnmount: "unmount %[2]s yourself, or let weir forget it: weir volume delete %[1]s",
		fault.AcceptFile:     "if you replaced it, for example from a backup: weir volume up %[1]s --accept-file",
		fault.NameOtherPlace: "name another place with --on",
		fault.UseVolume:      "use a directory on one of those, or a volume, which has a size of its own: weir volume create NAME --size SIZE",
		fault.QuotaClear:     "to remove them all, use weir quota clear",
		fault.QuotaList:      "weir quota show lists all quotas",
		fault.QuotaMoved:     "name the place where it is now (to leave the files in the project: weir quota clear --forget %[1]s)",
		fault.QuotaMount:     "mount it first, or if it is gone for good: weir quota clear --forget %[1]s",
		fault.QuotaForce:     "remove some of that, or add --force (then nothing more can be stored until it is below the limit)",
		fault.OtherName:      "choose another --name",
		fault.NoMemory:       "leave out --memory, or boot a kernel that has the memory controller",
	}
}
