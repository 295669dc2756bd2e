package api

import "fmt"

// Schema is the name and version of a JSON document, its first field. The version
// grows when a field changes its meaning or goes away; new fields do not change it.
type Schema struct {
	Schema string `json:"schema"`
}

// SchemaOf names the version of a verb's document.
func SchemaOf(verb string) Schema {
	version := 1
	if verb == "why" {
		version = 2
	}
	return Schema{fmt.Sprintf("weir.%s/%d", verb, version)}
}
