package helper

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf8"
)

// A name of a file or a group can be any bytes, and JSON has only valid text: it would lead nowhere
// at the other side. So such a text goes as mark and the hexadecimal digits of its bytes.
const (
	mark     = "\U0010fffd" // for private use, and nobody's
	replaced = `\ufffd`     // what package json writes for bytes that are no text
)

// pack makes JSON of a value; see Unpack.
func pack(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil || !bytes.Contains(text, []byte(replaced)) && !bytes.Contains(text, []byte(mark)) {
		return text, err
	}
	return json.Marshal(texts(reflect.ValueOf(value), func(s string) string {
		if utf8.ValidString(s) && !strings.HasPrefix(s, mark) {
			return s
		}
		return mark + hex.EncodeToString([]byte(s))
	}).Interface())
}

// Unpack reads into what a pointer points to what Ask was given, or what Serve's function has
// returned: their texts are the same to the byte.
func Unpack(text []byte, to any) error {
	if err := json.Unmarshal(text, to); err != nil || !bytes.Contains(text, []byte(mark)) {
		return err
	}
	value := reflect.ValueOf(to).Elem()
	value.Set(texts(value, func(s string) string {
		if digits, is := strings.CutPrefix(s, mark); is {
			if b, err := hex.DecodeString(digits); err == nil {
				return string(b)
			}
		}
		return s
	}))
	return nil
}

// texts is a copy of a value with other texts. What writes its own JSON has none, and is taken as it
// is.
func texts(v reflect.Value, of func(string) string) reflect.Value {
	if !v.IsValid() {
		return v
	}
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return v
	}
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	switch v.Kind() {
	case reflect.String:
		to.SetString(of(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				to.Field(i).Set(texts(v.Field(i), of))
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			part := texts(v.Elem(), of)
			if v.Kind() == reflect.Pointer {
				to.Set(reflect.New(part.Type()))
				to.Elem().Set(part)
			} else {
				to.Set(part)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			to.Index(i).Set(texts(v.Index(i), of))
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			to.Index(i).Set(texts(v.Index(i), of))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		to.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for all := v.MapRange(); all.Next(); {
			to.SetMapIndex(texts(all.Key(), of), texts(all.Value(), of))
		}
	}
	return to
}
