// Package tui is the live view of weir trace on a terminal. It is given reports, and
// knows neither BPF nor where they come from.
package tui
