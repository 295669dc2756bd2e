// Package agent tests weir's agent on real cgroups, where directories with copies of their files
// are not enough.
package agent
