package grpc

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// label is an entry of a map.
func label(key, value string) string {
	return string(AppendString(AppendString(nil, 1, key), 2, value))
}

// of is a thing with labels.
func of(labels ...string) []byte {
	m := AppendString(nil, 1, "a")
	for _, l := range labels {
		m = AppendString(m, 2, l)
	}
	return AppendString(nil, 1, string(m))
}

// Entries of a map that nobody needs take no room, however large and many they are.
func TestEntriesThatAreNotNeeded(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	backwards := func(key, value string) string {
		return string(AppendString(AppendString(nil, 2, value), 1, key))
	}
	for name, c := range map[string]struct {
		labels []string
		want   map[string]string
		whole  bool
	}{
		"none needed":               {[]string{label("x", large), label(large, ""), backwards("y", large), label("", large)}, map[string]string{}, true},
		"behind others":             {[]string{label("x", large), label("need", "1"), label(large, large), label("need-2", "")}, map[string]string{"need": "1", "need-2": ""}, true},
		"too large":                 {[]string{label("need", large), label("need-2", "2")}, map[string]string{"need-2": "2"}, false},
		"too large, backwards":      {[]string{backwards("need", large)}, map[string]string{}, false},
		"backwards":                 {[]string{backwards("need", "1"), backwards("x", "2")}, map[string]string{"need": "1"}, true},
		"too many":                  {[]string{label("need", large[:60]), label("need-2", large[:60])}, map[string]string{"need": large[:60]}, false},
		"twice, the last one":       {[]string{label("need", "1"), label("need", "2")}, map[string]string{"need": "2"}, true},
		"with other fields":         {[]string{string(AppendNumber(AppendString([]byte(label("need", "1")), 3, large), 1, 7))}, map[string]string{"need": "1"}, true},
		"another key after a value": {[]string{string(AppendString([]byte(label("need", "1")), 1, "x"))}, map[string]string{}, true},
		"a key after another":       {[]string{string(AppendString(nil, 1, "x")) + label("need", "1")}, map[string]string{"need": "1"}, true},
	} {
		got := map[string]string{}
		pick := Pick{Fields: []FieldNumber{1, 2}, Most: 100, Needs: map[FieldNumber]func(string) bool{2: func(key string) bool { return strings.HasPrefix(key, "need") }}}
		err := receiveEach(answerWith(of(c.labels...)), controlMax, pick, func(thing []byte, whole bool) error {
			if whole != c.whole || len(thing) > 120 {
				t.Errorf("%s: whole: %t, %d bytes", name, whole, len(thing))
			}
			return Fields(thing, func(number FieldNumber, value []byte) error {
				if number == 1 && string(value) != "a" {
					t.Errorf("%s: %q", name, value)
				}
				if number == 2 {
					return Entry(value, got)
				}
				return nil
			})
		})
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %.200q, %v", name, fmt.Sprint(got), err)
		}
	}
}

// FuzzEntry: the entries that are needed are those that a whole message has.
func FuzzEntry(f *testing.F) {
	f.Add(of(label("need", "1"), label("x", "2")))
	f.Add(of(string(AppendString(AppendString(nil, 2, "1"), 1, "need"))))
	f.Add([]byte{0x0a, 0x04, 0x12, 0x02, 0x0a, 0x00})
	isNeeded := func(key string) bool { return strings.HasPrefix(key, "n") }
	f.Fuzz(func(t *testing.T, message []byte) {
		got, want := map[string]string{}, map[string]string{}
		into := func(all map[string]string) func(FieldNumber, []byte) error {
			return func(number FieldNumber, value []byte) error {
				if number != 2 {
					return nil
				}
				return Entry(value, all)
			}
		}
		pick := Pick{Fields: []FieldNumber{2}, Most: 1 << 20, Needs: map[FieldNumber]func(string) bool{2: isNeeded}}
		cut := false // where a value is between two keys
		if err := receiveEach(answerWith(message), controlMax, pick, func(thing []byte, whole bool) error {
			cut = cut || !whole
			return Fields(bytes.Clone(thing), into(got))
		}); err != nil || cut {
			return
		}
		if err := Fields(message, func(number FieldNumber, thing []byte) error {
			if number != 1 {
				return nil
			}
			return Fields(thing, into(want))
		}); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(want, func(key, _ string) bool { return !isNeeded(key) || len(key) > keyMost })
		if !maps.Equal(got, want) {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	})
}
