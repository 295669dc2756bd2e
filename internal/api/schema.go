package api

import "fmt"

// Schema is the name and version of a JSON document, its first field. The version
// grows when a field changes its meaning or goes away; new fields do not change it.
type Schema struct {
	Schema string `json:"schema"`
}

// versions are the versions of documents that are no longer in their first.
var versions = map[string]int{"why": 2}

// SchemaOf names the version of a verb's document.
func SchemaOf(verb string) Schema {
	return Schema{fmt.Sprintf("weir.%s/%d", verb, max(1, versions[verb]))}
}
