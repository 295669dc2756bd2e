// Package plot draws line charts and histograms as SVG (https://www.w3.org/TR/SVG11/), by hand and
// without a library. It knows numbers and names, and nothing of disks.
package plot
