package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A finding is what the rules say under one code.
type finding struct {
	code       string
	severities []string // "breaks", "hurts", "note"
	texts      []string
	fixes      []fix
}

// A fix is one way out, with the lines to paste, if any.
type fix struct {
	text  string
	lines []string
}

// rules are the sources of a package.
type rules struct {
	functions map[string]*ast.FuncDecl // also methods, by their name alone
	constants map[string]ast.Expr
	rows      []map[string]ast.Expr // of the package's tables: values by the field's name
}

// read returns the findings of a package's sources, by code.
func read(dir string) ([]finding, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	r := rules{functions: map[string]*ast.FuncDecl{}, constants: map[string]ast.Expr{}}
	var all []*ast.FuncDecl
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				r.functions[d.Name.Name] = d
				all = append(all, d)
			case *ast.GenDecl:
				r.values(d)
			}
		}
	}
	found := map[string]*finding{}
	for _, f := range all {
		r.in(f).collect(found)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no findings", dir)
	}
	var sorted []finding
	for _, f := range found {
		if len(f.texts) == 0 || len(f.severities) == 0 {
			return nil, fmt.Errorf("%s: finding %s: no text or no severity that this tool can read", dir, f.code)
		}
		sorted = append(sorted, *f)
	}
	slices.SortFunc(sorted, func(a, b finding) int { return cmp.Compare(a.code, b.code) })
	return sorted, nil
}

// values notes constants, and the rows of tables.
func (r *rules) values(d *ast.GenDecl) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, value := range v.Values {
			if d.Tok == token.CONST {
				r.constants[v.Names[i].Name] = value
			}
			table, ok := value.(*ast.CompositeLit)
			if !ok {
				continue
			}
			for _, e := range table.Elts {
				if row, ok := e.(*ast.CompositeLit); ok {
					r.rows = append(r.rows, fieldsOf(row))
				}
			}
		}
	}
}

// A scope is one function of the rules.
type scope struct {
	rules
	body *ast.BlockStmt
	// assigned are the values that a name gets in the function. "one.Text" is a name too.
	assigned map[string][]assignment
	// closures are the functions within, and calls the arguments of calls of them.
	closures map[string]*ast.FuncLit
	calls    map[string][][]ast.Expr
	// given are the arguments of a call of the function, if it is looked at for that.
	given map[string]given
	row   map[string]ast.Expr // of a table, while a text that is made of one is spelled
}

// A given value is an argument, and the function that it is of.
type given struct {
	value ast.Expr
	by    scope
}

// An assignment is a value that is assigned, or added with +=.
type assignment struct {
	value ast.Expr
	added bool
	block ast.Node // the statements that it is among
}

func (r rules) in(f *ast.FuncDecl) scope {
	s := scope{rules: r, body: f.Body, assigned: map[string][]assignment{}, closures: map[string]*ast.FuncLit{}, calls: map[string][][]ast.Expr{}, given: map[string]given{}}
	var blocks []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			blocks = blocks[:len(blocks)-1]
			return true
		}
		block := ast.Node(f.Body)
		for _, b := range blocks {
			switch b.(type) {
			case *ast.BlockStmt, *ast.CaseClause:
				block = b
			}
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			s.assign(n, block)
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok {
				s.calls[name.Name] = append(s.calls[name.Name], n.Args)
			}
		}
		blocks = append(blocks, n)
		return true
	})
	return s
}

// called is the function that a call is of, if it is one of the package's, with its arguments.
func (s scope) called(c *ast.CallExpr) (scope, *ast.FuncDecl) {
	f := s.functions[lastName(c.Fun)]
	if f == nil || f.Body == nil {
		return s, nil
	}
	inside, at := s.in(f), 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if at < len(c.Args) {
				inside.given[name.Name] = given{c.Args[at], s}
			}
			at++
		}
	}
	return inside, f
}

func (s scope) assign(a *ast.AssignStmt, block ast.Node) {
	for i, left := range a.Lhs {
		name := nameOf(left)
		if name == "" || len(a.Lhs) != len(a.Rhs) {
			continue
		}
		if f, ok := a.Rhs[i].(*ast.FuncLit); ok {
			s.closures[name] = f
		}
		s.assigned[name] = append(s.assigned[name], assignment{a.Rhs[i], a.Tok == token.ADD_ASSIGN, block})
	}
}

// nameOf spells a name, or a field of one.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x := nameOf(e.X); x != "" {
			return x + "." + e.Sel.Name
		}
	}
	return ""
}

// lastName is the name of what is called, without what it is a method of.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// collect adds the findings that the function makes.
func (s scope) collect(found map[string]*finding) {
	of := map[*ast.CompositeLit]string{} // the names of those that have one
	for name, all := range s.assigned {
		for _, a := range all {
			if c, ok := a.value.(*ast.CompositeLit); ok && nameOf(c.Type) == "Finding" {
				of[c] = name
			}
		}
	}
	named := map[string]bool{}
	ast.Inspect(s.body, func(n ast.Node) bool {
		c, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := fieldsOf(c)
		if name := of[c]; name != "" {
			named[name] = true
			s.changed(name, fields, found)
		} else if fields["Code"] != nil {
			s.add(found, fields["Code"], fields["Severity"], fields["Text"], fields["Fixes"])
		}
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(s.assigned)) { // of a finding that a caller has made
		if who, isCode := strings.CutSuffix(name, ".Code"); isCode && !named[who] {
			s.changed(who, nil, found)
		}
	}
}

func fieldsOf(c *ast.CompositeLit) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			fields[nameOf(kv.Key)] = kv.Value
		}
	}
	return fields
}

// changed adds a finding that has a name, and what is assigned to it. Where the code is
// assigned, what is assigned beside it is of that code.
func (s scope) changed(name string, fields map[string]ast.Expr, found map[string]*finding) {
	codes := s.assigned[name+".Code"]
	if fields["Code"] != nil {
		codes = []assignment{{value: fields["Code"]}}
	}
	for _, code := range codes {
		one := s.add(found, code.value, fields["Severity"], fields["Text"], fields["Fixes"])
		beside := func(field string) (all []assignment) {
			for _, a := range s.assigned[name+"."+field] {
				if code.block == nil || a.block == code.block {
					all = append(all, a)
				}
			}
			return all
		}
		for _, a := range beside("Severity") {
			s.severity(one, a.value)
		}
		for _, a := range beside("Fixes") {
			s.fixes(one, a.value)
		}
		s.texts(one, fields["Text"], beside("Text"))
	}
}

func (s scope) add(found map[string]*finding, code, severity, text, fixes ast.Expr) *finding {
	name := strings.Join(s.spell(code), "")
	one := found[name]
	if one == nil {
		one = &finding{code: name}
		found[name] = one
	}
	s.severity(one, severity)
	s.texts(one, text, nil)
	s.fixes(one, fixes)
	return one
}

func (s scope) severity(one *finding, e ast.Expr) {
	if name := strings.ToLower(nameOf(e)); name != "" && !slices.Contains(one.severities, name) {
		one.severities = append(one.severities, name)
	}
}

// texts adds what a finding says: each text that is assigned, with each end that is added
// where it is not a sentence yet.
func (s scope) texts(one *finding, first ast.Expr, more []assignment) {
	var texts, ends []string
	if first != nil {
		texts = s.spell(first)
	}
	for _, a := range more {
		if a.added {
			ends = append(ends, s.spell(a.value)...)
		} else {
			texts = append(texts, s.spell(a.value)...)
		}
	}
	for _, text := range texts {
		whole := []string{text}
		if !strings.HasSuffix(text, ".") {
			whole = nil
			for _, end := range ends {
				whole = append(whole, text+end)
			}
		}
		for _, text := range whole {
			if _, rest, is := strings.Cut(text, upper); is {
				text = strings.ToUpper(rest[:1]) + rest[1:]
			}
			if !slices.Contains(one.texts, text) {
				one.texts = append(one.texts, text)
			}
		}
	}
}
