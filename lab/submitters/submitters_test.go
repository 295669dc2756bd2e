package submitters

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestNoteIsAProgram: what the assembler refuses is found out without a kernel.
func TestNoteIsAProgram(t *testing.T) {
	var code bytes.Buffer
	if err := note(3).Marshal(&code, binary.LittleEndian); err != nil {
		t.Fatal(err)
	}
	if code.Len() == 0 {
		t.Error("no instructions")
	}
}
