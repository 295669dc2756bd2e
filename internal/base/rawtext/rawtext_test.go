package rawtext

import (
	"encoding/json"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[Text]string{"/a b": `"/a b"`, "": `""`, "/\xff": `{"bytes":"L/8="}`, "ü\ufffd": "\"ü\ufffd\""} {
		data, err := json.Marshal(text)
		var back Text
		if err != nil || string(data) != want || json.Unmarshal(data, &back) != nil || back != text {
			t.Errorf("%q: %s, %v, and back: %q", text, data, err, back)
		}
	}
	for _, wrong := range []string{"5", `{"bytes":"?"}`, "[]", "{}"} {
		var text Text
		if err := json.Unmarshal([]byte(wrong), &text); err == nil {
			t.Errorf("%s: %q", wrong, text)
		}
	}
}
