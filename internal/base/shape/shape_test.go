package shape

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// small are bounds that a test reaches.
func small() Bounds { return Bounds{List: 3, Within: 2, Entries: 4, Fields: 3, Deep: 5, Text: 10} }

// What is within the bounds is taken, what is past one of them is named.
func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", ``: "", `]]]}},,"`: "", "{\"a\": [\n 1,\t2 , 3 ] }": "",
		`{"a":[{},{},{}],"b":[0,0,0]}`:                "",
		`{"a":[{},{},{},{}]}`:                         "more than 3 entries of a list",
		`[0,0,0,0]`:                                   "more than 3 entries of a list",
		`{"a":[{"b":[1,2],"c":[3,4]}]}`:               "",
		`{"a":[{"b":[1,2,3]}]}`:                       "more than 2 entries of a list within a list",
		`{"a":[{"b":[1,2],"c":[3,4]},{"b":[5]}]}`:     "more than 4 entries of lists within lists",
		`{"a":1,"b":2,"c":3}`:                         "",
		`{"a":1,"b":2,"c":3,"d":4}`:                   "more than 3 fields of an object",
		`{"a":[{"b":[{}]}]}`:                          "",
		`{"a":[{"b":[{"c":{}}]}]}`:                    "more than 5 lists within each other",
		`{"a":"12345678"}`:                            "",
		`{"a":"1234567890"}`:                          "more than 10 bytes of a text",
		`{"a":"[[[[[[\"{"}`:                           "",
		`{"a":"\\","b":[0,0,0,0]}`:                    "more than 3 entries of a list",
		`{"a":123456789}`:                             "",
		`{"a":12345678901}`:                           "more than 10 bytes of a figure",
		"{\"a\":\"\xff\"}":                            "it is not UTF-8, as JSON is",
		`{"a` + strings.Repeat("x", 20):               "more than 10 bytes of a text",
		`{"a":[1],"b":[` + strings.Repeat("[", 10000): "more than 5 lists within each other",
	} {
		got := ""
		if err := Check([]byte(text), small()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

// FuzzCheck: what it takes has no more than the bounds, as package json reads it.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":[1,2],"c":"\\\""}],"d":[[],[]]}`))
	f.Add([]byte(`[[[[[0]]]]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		most := small()
		err := Check(data, most)
		var more *Error
		if err != nil && !errors.As(err, &more) && !errors.Is(err, errNotUTF8) {
			t.Error(err)
		}
		var v any
		if err != nil || json.Unmarshal(data, &v) != nil {
			return
		}
		within := 0
		if what := past(v, 1, most, &within); what != "" || within > most.Entries {
			t.Errorf("%q: %s, %d", data, what, within)
		}
	})
}

// past says what a value has more than it may; empty: nothing.
func past(v any, deep int, most Bounds, within *int) string {
	switch v := v.(type) {
	case []any:
		if deep > 2 {
			*within += len(v)
		}
		if deep > most.Deep || len(v) > most.List || deep > 2 && len(v) > most.Within {
			return "a list"
		}
		for _, one := range v {
			if what := past(one, deep+1, most, within); what != "" {
				return what
			}
		}
	case map[string]any:
		if deep > most.Deep || len(v) > most.Fields {
			return "an object"
		}
		for _, one := range v {
			if what := past(one, deep+1, most, within); what != "" {
				return what
			}
		}
	case string:
		if len(v) > most.Text {
			return "a text"
		}
	}
	return ""
}
