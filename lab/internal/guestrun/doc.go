// Package guestrun runs an unpacked payload's test binaries one after the other
// and keeps what they print. The small guest's init, the full guest's unit and
// the native lane all run a job through it, so a test sees the same arguments,
// variables and working folder everywhere.
package guestrun
