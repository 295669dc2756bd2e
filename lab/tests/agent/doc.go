// Package agent tests the parts of weir's agent on real cgroups, where plain directories cannot
// stand in for them.
package agent
