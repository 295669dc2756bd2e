// Package rawtext keeps bytes that need not be UTF-8, such as the name of a group or a file, as
// they are in JSON, in which a text is always UTF-8: encoding/json puts U+FFFD in the place of all
// other bytes, and then names something else.
package rawtext

import (
	"encoding/json"
	"unicode/utf8"
)

// A Text is a string of any bytes. In JSON it is a string, or if it is not UTF-8 an object:
// {"bytes":"base64"}.
type Text string

type encoded struct {
	Bytes []byte `json:"bytes"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(encoded{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	err := json.Unmarshal(data, &s)
	if err != nil {
		var e encoded
		if json.Unmarshal(data, &e) != nil || len(e.Bytes) == 0 {
			return err
		}
		s = string(e.Bytes)
	}
	*t = Text(s)
	return nil
}
