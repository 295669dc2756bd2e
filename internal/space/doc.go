// Package space is what weir does with room on disks: it creates, changes and deletes volumes, and
// sets, shows and clears quotas. Each front end calls it and gets values: it prints nothing and
// reads no flags.
package space
