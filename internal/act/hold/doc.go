// Package hold puts rules into force. It chooses who writes them (systemd for its units, weir
// for every other group), writes them, reads them back, and undoes half-done changes.
//
// Whether a rule holds a path of I/O is the question of package place.
package hold
