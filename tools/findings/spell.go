package main

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unknown stands for what only a host can say.
const unknown = "…"

// upper begins a text whose first letter is made a large one.
const upper = "\x00"

// placeholders are the words that stand for a host's values, by the name of the field or
// the function that they come from. They are those of weir's help.
var placeholders = map[string]string{
	"Target": "TARGET", "flagsOf": "LIMITS", "flagsTo": "LIMITS", "boundsOf": "LIMITS", "Kernel": "RATE", "hold": "", "placeFlag": " --on FILE",
	"Node": "DEVICE", "nodeOf": "DEVICE", "Device": "DEVICE", "Source": "DEVICE", "Number": "MAJ:MIN", "Point": "MOUNT", "Spec": "PLACE", "At": "MOUNT", "File": "FILE",
	"By": "Docker or Podman", "Command": "docker", "Slice": "SLICE", "Unit": "UNIT", "Dir": "DIRECTORY", "Path": "GROUP",
	"FSType": "This file system", "Name": "UNIT", "Major": "X", "Minor": "Y", "Whose": "GROUP", "Seconds": unknown, "Text": unknown, "Direction": "read or write",
}

// spell returns the texts that an expression can be. It knows literals, constants, names
// that get a value in the function, the package's tables and functions, and formats.
func (s scope) spell(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
		return []string{e.Value}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return each(s.spellPart(e.X), s.spellPart(e.Y))
		}
	case *ast.SliceExpr: // a text without its first letter
		return s.spell(e.X)
	case *ast.IndexExpr:
		return s.spellIndex(e)
	case *ast.Ident:
		return s.spellName(e.Name)
	case *ast.SelectorExpr:
		if value, ok := s.row[e.Sel.Name]; ok {
			return s.spell(value)
		}
		return []string{standIn(e.Sel.Name)}
	case *ast.CallExpr:
		return s.spellCall(e)
	}
	return []string{unknown}
}

// spellPart is spell for a part of a text. Of a name that gets several values it takes the
// first, so that not all their combinations are told.
func (s scope) spellPart(e ast.Expr) []string {
	all := s.spell(e)
	if name, ok := e.(*ast.Ident); ok && len(s.assigned[name.Name]) > 0 {
		return all[:1]
	}
	return all
}

// each joins each text with each other one. Of two that both have several only the first
// are: they would be too many to read.
func each(left, right []string) (all []string) {
	if len(left) > 1 && len(right) > 1 {
		left = left[:1]
	}
	for _, l := range left {
		for _, r := range right {
			all = append(all, l+r)
		}
	}
	return all
}

func standIn(name string) string {
	if word, ok := placeholders[name]; ok {
		return word
	}
	return unknown
}

// spellIndex is one value of a list, or any of a map.
func (s scope) spellIndex(e *ast.IndexExpr) []string {
	list, ok := e.X.(*ast.CompositeLit)
	if field, isField := e.X.(*ast.SelectorExpr); isField {
		list, ok = s.row[field.Sel.Name].(*ast.CompositeLit)
	}
	if !ok {
		return []string{unknown}
	}
	var all []string
	for _, value := range list.Elts {
		if kv, ok := value.(*ast.KeyValueExpr); ok {
			all = append(all, s.spell(kv.Value)...)
		}
	}
	if at, ok := e.Index.(*ast.BasicLit); ok && len(all) == 0 {
		if i, err := strconv.Atoi(at.Value); err == nil && i < len(list.Elts) {
			return s.spell(list.Elts[i])
		}
	}
	return all
}

func (s scope) spellName(name string) []string {
	if value, ok := s.constants[name]; ok {
		return s.spell(value)
	}
	if word, ok := placeholders[name]; ok {
		return []string{word}
	}
	if g, ok := s.given[name]; ok {
		return g.by.spell(g.value)
	}
	var all []string
	for _, a := range s.assigned[name] {
		for _, text := range s.spell(a.value) {
			switch {
			case !strings.ContainsFunc(text, isLetter) || a.added && strings.Contains(text, unknown):
			case !a.added:
				all = append(all, text)
			case len(all) > 0 && strings.HasSuffix(all[0], "."):
				all = append(all, all[0]+text)
			}
		}
	}
	if all = append(all, s.spellParameter(name)...); len(all) == 0 {
		return []string{unknown}
	}
	return all
}

// spellParameter is what a parameter of a function within the function is called with.
func (s scope) spellParameter(name string) (all []string) {
	for _, closure := range slices.Sorted(maps.Keys(s.closures)) {
		at := 0
		for _, field := range s.closures[closure].Type.Params.List {
			for _, parameter := range field.Names {
				if parameter.Name == name {
					for _, arguments := range s.calls[closure] {
						all = append(all, s.spell(arguments[at])...)
					}
				}
				at++
			}
		}
	}
	return all
}

func (s scope) spellCall(c *ast.CallExpr) []string {
	name := lastName(c.Fun)
	switch nameOf(c.Fun) {
	case "fmt.Sprintf":
		return s.spellFormat(c)
	case "strings.ToUpper": // of the first letter
		return []string{upper}
	case "quote":
		return s.spell(c.Args[0])
	case "Name":
		return []string{"FILE"}
	}
	if of, ok := c.Fun.(*ast.SelectorExpr); ok && name == "String" {
		return s.spell(of.X)
	}
	if _, known := placeholders[name]; known {
		return []string{standIn(name)}
	}
	inside, f := s.called(c)
	if f == nil {
		return []string{unknown}
	}
	var first ast.Expr // what it returns, in its first case
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && first == nil && len(r.Results) == 1 {
			first = r.Results[0]
		}
		return first == nil
	})
	if first == nil {
		return []string{unknown}
	}
	return inside.spell(first)
}

var verb = regexp.MustCompile(`%[a-z%]`)

// spellFormat spells a format and its arguments: once, or for each row of the table that
// they come from.
func (s scope) spellFormat(c *ast.CallExpr) (all []string) {
	var fields []string
	for _, a := range c.Args {
		ast.Inspect(a, func(n ast.Node) bool {
			if field, ok := n.(*ast.SelectorExpr); ok && nameOf(field.X) == "b" {
				fields = append(fields, field.Sel.Name)
			}
			return true
		})
	}
	rows := 0
	for _, row := range s.rows {
		has := len(fields) > 0
		for _, field := range fields {
			has = has && row[field] != nil
		}
		if has {
			of := s
			of.row, rows = row, rows+1
			all = append(all, of.spellOne(c)...)
		}
	}
	if rows == 0 {
		return s.spellOne(c)
	}
	return all
}

func (s scope) spellOne(c *ast.CallExpr) []string {
	texts := []string{""}
	format, at := s.spell(c.Args[0])[0], 1
	for where := verb.FindStringIndex(format); where != nil; where = verb.FindStringIndex(format) {
		with := []string{"%"}
		if format[where[0]:where[1]] != "%%" {
			with, at = s.spell(c.Args[at]), at+1
		}
		texts, format = each(each(texts, []string{format[:where[0]]}), with), format[where[1]:]
	}
	return each(texts, []string{format})
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
