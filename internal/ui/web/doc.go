// Package web is the page: groups beside their limits in a browser, live and of the past. It
// answers over HTTP, and only shows: nothing is changed.
//
// The parts: page.go has the routes and guard.go what every answer obeys. list.go and rows.go make
// the list of groups, detail.go one group, past.go what history has of it, ask.go the answers to
// weir why, trace.go and traced.go where a group waits. follow.go reads once for all clients, and stream.go sends each what has changed. The
// templates work without a script. The script (assets/page.js) brings in what a stream sends, and
// draws charts with uPlot.
//
// The page is a handler beside /metrics on the same server. One goroutine reads each second while
// any page is live, and makes one event of what has changed for all of them; it ends with the last
// client. Text is made of figures in Go alone (top.FiguresOf), for the templates and the events
// alike, so the script only brings texts into cells. Nothing inline stands in a page, so the policy
// needs no exception: a bar is an SVG with a width. uPlot is vendored as its package has it.
//
// # Where a group waits
//
// Each group has what costs nothing: io.pressure, and for how long weir's pacer paused it. The split by
// causes is that of weir trace (traced.go). It takes BPF programs in the kernel, which lengthen the
// group's reads and writes. So it is measured on request, for some seconds (trace.go), and only if
// weird was told that the page may (--page-trace). Otherwise each user of the host who can reach the page
// could have root load programs. One trace runs at a time, for all who ask meanwhile; after it there is
// a rest three times as long. It changes no limit, and goes on when its clients leave.
//
// The link that starts one has a token, which is new with each start of weird. A page of another
// origin can lead a browser to an address, but cannot read the token in this page. Shown are sums: no
// names of files or processes, and no single operation, which would tell users about each other.
package web
