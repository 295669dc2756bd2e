package rawtext

import (
	"encoding"
	"encoding/json"
	"reflect"
)

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	texter    = reflect.TypeFor[encoding.TextMarshaler]()
)

// writesItself reports whether a type has its own form in JSON.
func writesItself(v reflect.Value) bool {
	t := v.Type()
	return t.Implements(marshaler) || t.Implements(texter) ||
		v.CanAddr() && (reflect.PointerTo(t).Implements(marshaler) || reflect.PointerTo(t).Implements(texter))
}

// isEmpty is what omitempty leaves out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero is what omitzero leaves out.
func isZero(v reflect.Value) bool {
	if z, is := v.Interface().(interface{ IsZero() bool }); is {
		return z.IsZero()
	}
	return v.IsZero()
}
