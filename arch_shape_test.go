package weir_test

import (
	"go/ast"
	"testing"
)

// functionLines bounds a function of the program, from its first line to its last.
const functionLines = 60

func TestFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isProgram() {
			continue
		}
		for _, d := range s.file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; n > functionLines {
				t.Errorf("%s: %s has %d lines, and may have %d", s.at(f), f.Name.Name, n, functionLines)
			}
		}
	}
}
