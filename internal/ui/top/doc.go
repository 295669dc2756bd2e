// Package top shows what a host's groups read and write beside their limits, as text: one table
// for weir top --once, and the screen of weir top on a terminal. It is given snapshots and decides
// how they look, and tests compare that at several widths; package live has only the terminal.
package top
