// Package contrib has the files that other programs take to run weir: systemd's, Prometheus' and
// Grafana's.
package contrib

import _ "embed"

// WeirdService is the unit with which systemd runs weird.
//
//go:embed weird.service
var WeirdService string
