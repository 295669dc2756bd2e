// Package docs holds weir's documents, so that tests can hold them against the
// program wherever they run.
package docs

import "embed"

// Files are the documents: json.md, and the manual pages below man.
//
//go:embed json.md man/*.1
var Files embed.FS
