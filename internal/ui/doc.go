// Package ui and those below it say how things look: tables and paragraphs (text), drawings (svg),
// the charts that both have (chart, plot) and the live view (tui). They get values of the core,
// and decide nothing. Nothing below internal/ imports them: a front end does.
package ui
