package api

import "time"

// A Version is the document of weir version and weird version.
type Version struct {
	Schema
	Version string `json:"version"`
}

// VersionOf makes it.
func VersionOf(version string) Version { return Version{SchemaOf("version"), version} }

// A Health is what weir's daemon answers when it is asked whether it lives.
type Health struct {
	Schema
	Version string  `json:"version"`
	PID     int     `json:"pid"`
	Up      float64 `json:"up_seconds"`
}

// HealthOf makes the answer of a daemon that has run for some time.
func HealthOf(version string, pid int, up time.Duration) Health {
	return Health{SchemaOf("health"), version, pid, up.Seconds()}
}

// An Error is what the daemon answers to a request that it refuses.
type Error struct {
	Schema
	Error string `json:"error"`
}

// ErrorOf makes it.
func ErrorOf(err error) Error { return Error{SchemaOf("error"), err.Error()} }
