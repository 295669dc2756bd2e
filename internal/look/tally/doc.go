// Package tally measures what a group does under its limits while it runs, and judges whether
// the limits were held. It measures what the group's processes wrote, what the kernel charged
// to the group, what went past the limit, and what the disks did, each over the time in which
// it happened.
package tally
