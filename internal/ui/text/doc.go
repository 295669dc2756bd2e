// Package text says how the results of the core look as text: tables, and the lines that a verb
// says about what it did. A function gets a value and returns lines, or hands them to the cli.Out
// that it gets; it decides nothing.
package text
