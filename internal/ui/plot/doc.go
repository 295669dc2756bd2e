// Package plot draws charts and histograms as SVG (https://www.w3.org/TR/SVG11/), and charts
// of characters, by hand and without a library. It knows numbers and names, and nothing of
// disks.
package plot
