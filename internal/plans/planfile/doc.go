// Package planfile reads plans and assignments from YAML: the text of files → a configuration. It
// is pure, and opens nothing. A configuration is taken whole or not at all; each refusal has its
// file, line and column. The published JSON schema and the parser are tested against each other,
// file by file.
//
// The YAML library is too heavy for weir, so weir has a helper read files: see plans.HelperArg.
package planfile

// The bounds of a configuration. What is larger is refused.
const (
	plansMax       = 1000 // in all files
	assignmentsMax = 10_000
	onMax          = 64 // places of one plan, with those of the plans that it extends
	labelsMax      = 32 // of one assignment
	nameMax        = 63 // bytes of a plan's name
	textMax        = 4096
	depthMax       = 8 // of lists and mappings in each other; a right file has 5
	refusalsMax    = 20
)
