// Package limiting is what weir does with limits: it shows those in force, sets, clears and
// restores them. Each front end calls it and gets values: it prints nothing and reads no flags.
package limiting

import "github.com/weir-io/weir/internal/host"

// A Manager does it on one host.
type Manager struct{ Host *host.Host }
