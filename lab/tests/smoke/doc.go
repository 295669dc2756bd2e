// Package smoke tests the lab itself: that each guest is what the matrix says,
// and that its disks work.
package smoke
