package rawtext

import (
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzDocument: names of any bytes are the same when they come back, and whatever is read ends in a value.
func FuzzDocument(f *testing.F) {
	f.Add("/a", "/\xff", []byte(`{"name":"/\ufffd","name_base64":"L/8="}`))
	f.Add("_base64\":", "\\ufffd", []byte(`{"groups":[{"below":["\ufffd"],"below_base64":["/w=="]}],"groups_base64":"","plan":null,"plan_base64":[]}`))
	f.Fuzz(func(t *testing.T, one, two string, text []byte) {
		want := []inner{{Name: one, Below: []string{two, one}}, {Name: two}}
		data, err := Marshal(want)
		if err != nil || !utf8.Valid(data) {
			t.Fatalf("%s, %v", data, err)
		}
		var got []inner
		if err := Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v: %s", got, err, data)
		}
		var any document
		if Unmarshal(text, &any) != nil {
			return
		}
		if _, err := Marshal(any); err != nil && any.Any == nil {
			t.Error(err)
		}
	})
}
