package weir_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// What happens before main, and what is changed from anywhere, is found by nobody.
func TestNothingIsGlobal(t *testing.T) {
	variables := map[string]map[string]bool{} // of each package
	var program []source
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		program = append(program, s)
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "init" && d.Recv == nil {
					t.Errorf("%s: func init", s.at(d))
				}
			case *ast.GenDecl:
				for _, name := range variableNames(d) {
					if variables[s.dir()] == nil {
						variables[s.dir()] = map[string]bool{}
					}
					variables[s.dir()][name] = true
				}
			}
		}
	}
	for _, s := range program {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			local := localNames(f)
			for _, changed := range assigned(f.Body) {
				if variables[s.dir()][changed.Name] && !local[changed.Name] {
					t.Errorf("%s: %s changes the package's variable %s", s.at(changed), f.Name.Name, changed.Name)
				}
			}
		}
	}
}

func variableNames(d *ast.GenDecl) []string {
	var names []string
	if d.Tok != token.VAR {
		return nil
	}
	for _, spec := range d.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// localNames are the names that a function declares, anywhere in it.
func localNames(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					addName(names, e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				addName(names, n.Key)
				addName(names, n.Value)
			}
		case *ast.GenDecl:
			for _, name := range variableNames(n) {
				names[name] = true
			}
		}
		return true
	})
	return names
}

func addName(names map[string]bool, e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok {
		names[name.Name] = true
	}
}

// assigned are the variables that a body changes: the roots of what it assigns to,
// counts up, or takes the address of.
func assigned(body *ast.BlockStmt) []*ast.Ident {
	var all []*ast.Ident
	add := func(e ast.Expr) {
		if root := rootOf(e); root != nil {
			all = append(all, root)
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				add(e)
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				add(n.X)
			}
		}
		return true
	})
	return all
}

func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch n := e.(type) {
		case *ast.Ident:
			return n
		case *ast.SelectorExpr:
			e = n.X
		case *ast.IndexExpr:
			e = n.X
		case *ast.ParenExpr:
			e = n.X
		default:
			return nil
		}
	}
}
