// Package inode_test measures on real kernels whose limit holds the writeback of a file:
// the group's that dirtied it first, even a removed one, until its ownership is moved.
package inode_test
