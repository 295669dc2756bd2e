package api

import "github.com/weir-io/weir/internal/look/demo"

// A Demo is the document of weir demo.
type Demo struct {
	Schema
	Rows []demo.Row `json:"rows"`
}

// DemoOf makes the document of what was measured.
func DemoOf(rows []demo.Row) Demo { return Demo{SchemaOf("demo"), rows} }
