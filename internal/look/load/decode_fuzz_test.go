package load

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// An endless line of what a load says.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	e.left -= len(p)
	if e.left < 0 {
		return 0, errors.New("read beyond the bound of a line")
	}
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// FuzzDecode: whatever comes from a load's process, each tick is a line of its own, the result is
// the last thing told, and a line that does not end is not read without a bound.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("{\"tick\":{}}\n{\"result\":{}}\n"), false)
	f.Add([]byte("{\"tick\":{},\"result\":null}\n\n"), true)
	f.Add([]byte("null\n[\x1b[2J"), true)
	f.Fuzz(func(t *testing.T, data []byte, more bool) {
		ticks := 0
		var in io.Reader = bytes.NewReader(data)
		if more {
			in = io.MultiReader(in, &endless{left: 4 * lineMax})
		}
		_, err := Decode(in, func(Tick) { ticks++ })
		lines := bytes.Count(data, []byte("\n")) + 1
		if ticks > lines || err == nil && ticks >= lines {
			t.Errorf("%q: %d ticks, %v", data, ticks, err)
		}
		if err != nil && (strings.Contains(err.Error(), "beyond the bound") || strings.ContainsRune(err.Error(), 0x1b) || len(err.Error()) > 1000) {
			t.Errorf("%q: %v", data, err)
		}
	})
}
