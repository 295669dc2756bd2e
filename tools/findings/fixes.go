package main

import (
	"go/ast"
	"slices"
	"strings"
)

// fixes adds the ways out that an expression names.
func (s scope) fixes(one *finding, e ast.Expr) { s.fixesOf(one, e, map[string]bool{}) }

func (s scope) fixesOf(one *finding, e ast.Node, seen map[string]bool) {
	if e == nil || e == ast.Expr(nil) {
		return
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if nameOf(n.Type) == "Finding" {
				return false
			}
			if fields := fieldsOf(n); fields["Text"] != nil {
				s.fix(one, fields)
			}
		case *ast.Ident:
			if !seen[n.Name] {
				seen[n.Name] = true
				for _, a := range s.assigned[n.Name] {
					s.fixesOf(one, a.value, seen)
				}
			}
		case *ast.CallExpr:
			inside, f := s.called(n)
			if name := lastName(n.Fun) + "()"; f != nil && makesFixes(f) && !seen[name] {
				seen[name] = true
				inside.fixesOf(one, f.Body, map[string]bool{name: true})
			}
		}
		return true
	})
}

// makesFixes reports whether a function returns a Fix, or some.
func makesFixes(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	return slices.ContainsFunc(f.Type.Results.List, func(r *ast.Field) bool {
		array, ok := r.Type.(*ast.ArrayType)
		return nameOf(r.Type) == "Fix" || ok && nameOf(array.Elt) == "Fix"
	})
}

func (s scope) fix(one *finding, fields map[string]ast.Expr) {
	for _, text := range s.spell(fields["Text"]) {
		same := func(f fix) bool { return f.text == text }
		if strings.ContainsFunc(text, isLetter) && !slices.ContainsFunc(one.fixes, same) {
			one.fixes = append(one.fixes, fix{text, s.lines(fields["Lines"])})
		}
	}
}

// lines are the elements of a list, or what the function adds to one.
func (s scope) lines(e ast.Expr) (lines []string) {
	add := func(elements []ast.Expr) {
		for _, element := range elements {
			if line := s.spell(element)[0]; strings.ContainsFunc(line, isLetter) && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		add(e.Elts)
	case *ast.SliceExpr:
		return s.lines(e.X)
	case *ast.Ident:
		if g, ok := s.given[e.Name]; ok {
			return g.by.lines(g.value)
		}
		for _, a := range s.assigned[e.Name] {
			lines = append(lines, s.lines(a.value)...)
		}
	case *ast.CallExpr:
		if nameOf(e.Fun) == "append" {
			add(e.Args[1:])
		} else if inside, f := s.called(e); f != nil {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok && nameOf(c.Fun) == "append" {
					lines = append(lines, inside.lines(c)...)
				}
				return true
			})
		}
	}
	return lines
}
