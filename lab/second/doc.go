// Package second is another front end than weir's command line. It calls the packages that do
// things, and answers with the documents of package api. It imports no package of a front end.
// Tests ask it and the command line for the same, and compare the documents, so nothing that a
// front end needs is in cmd/weir alone.
//
// Its program is a test's binary that calls Main first: weir's helpers start as /proc/self/exe.
package second
