// Package web is the page: groups beside their limits in a browser, live and of the past. It
// answers over HTTP, and only shows: nothing is changed.
//
// The parts: page.go has the routes and guard.go what every answer obeys. list.go and rows.go make
// the list of groups, detail.go one group, past.go what history has of it, ask.go the answers to
// weir why. follow.go reads once for all clients, and stream.go sends each what has changed. The
// templates work without a script. The script (assets/page.js) brings in what a stream sends, and
// draws charts with uPlot.
//
// The page is a handler beside /metrics on the same server. One goroutine reads each second while
// any page is live, and makes one event of what has changed for all of them; it ends with the last
// client. Text is made of figures in Go alone (top.FiguresOf), for the templates and the events
// alike, so the script only brings texts into cells. Nothing inline stands in a page, so the policy
// needs no exception: a bar is an SVG with a width. uPlot is vendored as its package has it.
package web
