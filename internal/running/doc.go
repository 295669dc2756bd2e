// Package running is what weir run does: it decides what will hold for a command, runs the
// command in a group with those limits, and says afterwards what held. It prints nothing, and
// leaves signals and streams to the front end.
package running
