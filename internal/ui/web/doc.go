// Package web is the page: groups beside their limits in a browser, live and of the past. It
// answers over HTTP, and only shows: nothing is changed.
//
// The parts: page.go has the routes and guard.go what every answer obeys. list.go and rows.go make
// the list of groups, detail.go one group, past.go what history has of it, ask.go the answers to
// weir why. follow.go reads once for all clients, and stream.go sends each what has changed. The
// templates work without a script. The script (assets/page.js) brings in what a stream sends, and
// draws charts with uPlot. Figures are made into text here alone, as weir top shows them.
package web
