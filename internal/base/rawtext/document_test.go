package rawtext

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name  string   `json:"name"`
	Below []string `json:"below"`
}

type Base struct {
	Base   string `json:"schema"` // of the name of its type
	Hidden string `json:"groups"`
}

type itself string

func (i itself) MarshalJSON() ([]byte, error) { return json.Marshal("<" + string(i) + ">") }

// A document has what documents have.
type document struct {
	Base
	*inner
	Time    time.Time        `json:"time"`
	Groups  []inner          `json:"groups"`
	Of      map[string]inner `json:"of"`
	Plan    *string          `json:"plan"`
	None    *inner           `json:"none"`
	Missing string           `json:"missing,omitempty"`
	Zero    time.Time        `json:"zero,omitzero"`
	Own     inner            `json:"own"`
	Bytes   []byte           `json:"bytes"`
	Any     any              `json:"any"`
	Itself  itself           `json:"itself"`
	Text    Text             `json:"text"`
	Pair    [2]int           `json:"pair"`
	NoTag   int
	Left    string `json:"-"`
	private string
}

func aDocument(name string) document {
	return document{Base: Base{Base: "weir.x/1"}, inner: &inner{Name: name, Below: []string{name, "b"}}, Groups: []inner{{Name: "<a>"}, {Name: name}}, Of: map[string]inner{"x": {}},
		Plan: &name, Own: inner{Name: name, Below: []string{}}, Any: inner{Name: "\ufffd"}, Itself: "y", Text: Text(name), private: "p"}
}

// A document of which all texts are UTF-8 is the same as ever, also when it is written by this package.
func TestDocumentsAreJSON(t *testing.T) {
	doc := aDocument("/ü\\ufffd<")
	want, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Marshal(doc); err != nil || string(got) != string(want) {
		t.Errorf("%v:\n%s\n%s", err, got, want)
	}
	if got, err := appendValue(nil, reflect.ValueOf(&doc)); err != nil || string(got) != string(want) {
		t.Errorf("%v:\n%s\n%s", err, got, want)
	}
	if got, err := Marshal(nil); err != nil || string(got) != "null" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := Marshal(struct {
		Name string
		Fail func()
	}{"\xff", nil}); err == nil {
		t.Error("no JSON of a function")
	}
}

// Names that are not UTF-8 stay texts, and have their bytes beside them.
func TestExactNames(t *testing.T) {
	doc := aDocument("/\xff")
	text, err := Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"/\ufffd","name_base64":"L/8="`, `"below":["/\ufffd","b"],"below_base64":["L/8=",null]`, `"plan":"/\ufffd","plan_base64":"L/8="`, `{"name":"\u003ca\u003e","below":null}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	var plain struct{ Groups []struct{ Name string } } // of one who knows nothing of it
	if err := json.Unmarshal(text, &plain); err != nil || plain.Groups[1].Name != "/\ufffd" {
		t.Errorf("%+v, %v", plain, err)
	}
	var back document
	back.inner = &inner{}
	if err := Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Name != "/\xff" || back.Below[0] != "/\xff" || back.Below[1] != "b" || back.Groups[1].Name != "/\xff" || *back.Plan != "/\xff" || back.Own.Name != "/\xff" || back.Groups[0].Name != "<a>" {
		t.Errorf("%+v, %+v", back, *back.inner)
	}
}

// Bytes that are not those of the text beside them are not taken.
func TestOtherBytes(t *testing.T) {
	for _, beside := range []string{`"Yg=="`, `"/w=="`, `"?"`, `7`, `null`, `["L/8="]`, `{"a":1}`} {
		var one inner
		if err := Unmarshal(fmt.Appendf(nil, `{"name":"/a","name_base64":%s,"below":["x"],"below_base64":[%[1]s,%[1]s]}`, beside), &one); err != nil || one.Name != "/a" || one.Below[0] != "x" {
			t.Errorf("%s: %+v, %v", beside, one, err)
		}
	}
}
