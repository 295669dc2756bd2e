// Package tally measures what a group does under its limits, while it does it, and judges
// whether they were held: what its processes wrote, what the group was charged, what went
// past the limit, and what the disks did, each over the time in which it happened.
package tally
