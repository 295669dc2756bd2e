package cli

import "runtime/debug"

// Version is the version of this program: the one that the linker was given, or else the one
// that Go's build has noted.
func Version(linked string) string {
	if info, ok := debug.ReadBuildInfo(); ok && linked == "" {
		return info.Main.Version
	}
	return linked
}
