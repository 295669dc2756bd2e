package rawtext

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// suffix ends the name of the field that has the exact bytes of the text before it.
const suffix = "_base64"

// mark is in each document that has such a field.
const mark = suffix + `":`

// replaced is what encoding/json writes for a byte that is not UTF-8. U+FFFD itself it writes as it is.
const replaced = `\ufffd`

// Marshal is json.Marshal for documents of others' names. A text that is not UTF-8 stays a text, so that programs that
// know no other kind can read the document. Its exact bytes follow it, in a field whose name ends in _base64. Of a list of
// texts that is a list too, with null for each text that is exact. Keys of maps have no such field.
func Marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil || !bytes.Contains(text, []byte(replaced)) {
		return text, err
	}
	return appendValue(nil, reflect.ValueOf(v))
}

// Unmarshal is json.Unmarshal for what Marshal has made: texts have their exact bytes again.
func Unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil && bytes.Contains(data, []byte(mark)) {
		restore(data, reflect.ValueOf(into))
	}
	return err
}

// appendValue appends a value as json.Marshal writes it.
func appendValue(out []byte, v reflect.Value) ([]byte, error) {
	if v.IsValid() && !writesItself(v) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				return appendValue(out, v.Elem())
			}
		case reflect.Struct:
			return appendStruct(out, v)
		case reflect.Slice:
			if !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8 {
				return appendList(out, v)
			}
		}
	}
	var plain any
	if v.IsValid() {
		plain = v.Interface()
	}
	text, err := json.Marshal(plain)
	return append(out, text...), err
}

func appendList(out []byte, v reflect.Value) (_ []byte, err error) {
	out = append(out, '[')
	for i := range v.Len() {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendValue(out, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendStruct(out []byte, v reflect.Value) (_ []byte, err error) {
	out = append(out, '{')
	for _, f := range fieldsOf(v.Type()) {
		one, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitEmpty && isEmpty(one) || f.omitZero && isZero(one) { // the error is an embedded pointer to nothing
			continue
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), f.name...), `":`...)
		if out, err = appendValue(out, one); err != nil {
			return nil, err
		}
		if exact := exactOf(one); exact != nil {
			text, err := json.Marshal(exact)
			if err != nil {
				return nil, err
			}
			out = append(append(append(append(out, `,"`...), f.name...), `_base64":`...), text...)
		}
	}
	return append(out, '}'), nil
}

// exactOf is what follows a text, or a list of texts; nil: nothing.
func exactOf(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch {
	case isText(v.Type()) && !utf8.ValidString(v.String()):
		return []byte(v.String())
	case v.Kind() == reflect.Slice && isText(v.Type().Elem()):
		all, any := make([][]byte, v.Len()), false
		for i := range all {
			if text := v.Index(i).String(); !utf8.ValidString(text) {
				all[i], any = []byte(text), true
			}
		}
		if any {
			return all
		}
	}
	return nil
}

// restore puts exact bytes back into a value that was read from data. What makes no sense is left as it is.
func restore(data []byte, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			restore(data, v.Elem())
		}
	case reflect.Slice:
		var all []json.RawMessage
		if v.Type().Elem().Kind() == reflect.Uint8 || json.Unmarshal(data, &all) != nil || len(all) != v.Len() {
			return
		}
		for i, one := range all {
			if bytes.Contains(one, []byte(mark)) {
				restore(one, v.Index(i))
			}
		}
	case reflect.Struct:
		var all map[string]json.RawMessage
		if json.Unmarshal(data, &all) != nil {
			return
		}
		for _, f := range fieldsOf(v.Type()) {
			one, err := v.FieldByIndexErr(f.index)
			if err != nil {
				continue
			}
			if exact, is := all[f.name+suffix]; is {
				setExact(exact, one)
			} else if text := all[f.name]; bytes.Contains(text, []byte(mark)) {
				restore(text, one)
			}
		}
	}
}

func setExact(data []byte, v reflect.Value) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case isText(v.Type()):
		var text string
		if json.Unmarshal(data, &text) == nil {
			setText(text, v)
		}
	case v.Kind() == reflect.Slice && isText(v.Type().Elem()):
		var all []string // null is empty
		if json.Unmarshal(data, &all) != nil || len(all) != v.Len() {
			return
		}
		for i, text := range all {
			setText(text, v.Index(i))
		}
	}
}

// setText sets a text to bytes of which it is what JSON can say.
func setText(encoded string, v reflect.Value) {
	exact, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && !utf8.Valid(exact) && string([]rune(string(exact))) == v.String() {
		v.SetString(string(exact))
	}
}

func isText(t reflect.Type) bool { return t.Kind() == reflect.String && !t.Implements(marshaler) }

// A field is one that encoding/json writes.
type field struct {
	name                string
	index               []int
	omitEmpty, omitZero bool
}

// fieldsOf are the fields of a struct, with those of structs that it embeds. Of two of one name the outer one is taken.
func fieldsOf(t reflect.Type) []field {
	all := fieldsIn(t, nil)
	index := map[string][]int{} // of the one that is taken
	for _, f := range all {
		if was, is := index[f.name]; !is || len(f.index) < len(was) {
			index[f.name] = f.index
		}
	}
	return slices.DeleteFunc(all, func(f field) bool { return !slices.Equal(f.index, index[f.name]) })
}

// fieldsIn are the fields of a struct that is at an index of another one.
func fieldsIn(t reflect.Type, at []int) (all []field) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(slices.Clone(at), f.Index...)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			all = append(all, fieldsIn(inner, index)...)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			one := field{name, index, false, false}
			for option := range strings.SplitSeq(options, ",") {
				one.omitEmpty, one.omitZero = one.omitEmpty || option == "omitempty", one.omitZero || option == "omitzero"
			}
			all = append(all, one)
		}
	}
	return all
}
