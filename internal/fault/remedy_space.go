package fault

// What can be done about volumes, quotas and the groups of commands.
const (
	VolumeUp       Do = "volume-up"        // bring the volume Target up first
	VolumeDown     Do = "volume-down"      // take the volume Target down first
	VolumeCreate   Do = "volume-create"    // name the mount point itself, or create a volume at Target
	VolumeAdopt    Do = "volume-adopt"     // adopt the mount at Target, if it has a device of its own
	VolumeForget   Do = "volume-forget"    // have the volume Target forgotten
	VolumeRemove   Do = "volume-remove"    // have the volume Target forgotten, and remove its file
	VolumeMount    Do = "volume-mount"     // mount the disk of the volume Target, or have the volume forgotten
	AdoptedMount   Do = "adopted-mount"    // mount the adopted volume Target, or have it forgotten
	AdoptedUnmount Do = "adopted-unmount"  // unmount Also, or have the adopted volume Target forgotten
	AcceptFile     Do = "accept-file"      // accept the file that is there as that of the volume Target
	NameOtherPlace Do = "name-other-place" // name another place for the file
	UseVolume      Do = "use-volume"       // use a file system with quotas, or a volume
	QuotaClear     Do = "quota-clear"      // clear the quota
	QuotaList      Do = "quota-list"       // list the quotas
	QuotaMoved     Do = "quota-moved"      // name the place where the directory is now, or have project Target forgotten
	QuotaMount     Do = "quota-mount"      // mount the file system, or have the quota on Target forgotten
	QuotaForce     Do = "quota-force"      // remove some of what is stored, or insist
	OtherName      Do = "other-name"       // choose another name
	NoMemory       Do = "no-memory"        // do not limit memory, or boot a kernel that can
)
