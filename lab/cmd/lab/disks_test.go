package main

import "testing"

// Three guests on two processors are for machines that have memory for the disks of three.
func TestWithDisks(t *testing.T) {
	for _, c := range []struct{ guests, room, want int }{{3, 3, 3}, {3, 2, 2}, {3, 1, 3}, {2, 1, 2}, {1, 0, 1}} {
		if got := withDisks(c.guests, 2, func(n int) bool { return n <= c.room }); got != c.want {
			t.Errorf("%d guests, memory for the disks of %d: %d at once, want %d", c.guests, c.room, got, c.want)
		}
	}
}
