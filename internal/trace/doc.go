// Package trace.
package trace
