// Package debian fetches packages of any Debian suite without touching the
// system's own apt. The lab boots kernels of seven suites, and the machine it
// runs on has one.
//
// Each suite gets an apt state of its own below the cache directory: a sources
// list, index lists, a package cache and an empty dpkg status. The sources list
// is the system's own Debian entry (/etc/apt) with the suite replaced, so the
// mirror, the proxy and whatever else the administrator configured apply here
// too, and this package names no address.
//
// apt authenticates every index against the system's archive keyring; a suite
// signed only with keys that the keyring lacks is reached through a chain: the
// debian-archive-keyring package of the nearest older suite that does
// authenticate supplies the keyring for the next (keyring.go). Each downloaded
// file is compared with the SHA-256 of the authenticated index, when it arrives
// and again whenever it is taken from the cache.
//
// An index is refreshed at most once a day; when that does not work out and an
// older index is there, the older one serves, so that a machine without a
// network keeps working with what it has. Several processes may share a cache
// directory: a suite's state is changed under a file lock.
//
// Exact versions disappear from mirrors, so everything here is asked for by name.
package debian
