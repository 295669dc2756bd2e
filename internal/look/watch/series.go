package watch

import "time"

// A Series is what one group did over a time.
type Series struct {
	Target string // as it was called last
	Cgroup string
	Step   time.Duration // between two points
	Points []Point       // in the order of their times, and of the devices' numbers
}

// A Point is what a group did on a device in the time that ended then.
type Point struct {
	At     time.Time
	Window time.Duration
	Device Device
	// Pressure and Memory are the group's; nil: the kernel did not tell.
	Pressure *Pressure
	Memory   *Memory
}
