// Package api has the JSON documents of docs/json.md: one set for every front end. A document
// is made from a value of the core, prints nothing and decides nothing.
//
// A document's first field names the document and its version (Schema). Its fields stay as they
// are within a version, and new ones may come.
package api
