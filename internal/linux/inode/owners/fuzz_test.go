package owners

import (
	"bytes"
	"context"
	"testing"
)

// FuzzAnswer: an answer of the kernel's program is read to its end, each record once; one that
// is cut short is an error.
func FuzzAnswer(f *testing.F) {
	f.Add(make([]byte, 2*recordBytes))
	f.Add(make([]byte, recordBytes-1))
	f.Fuzz(func(t *testing.T, answer []byte) {
		files, err := readFiles(context.Background(), bytes.NewReader(answer), newNames(nil))
		if err == nil && (len(answer)%recordBytes != 0 || len(files) > len(answer)/recordBytes) {
			t.Errorf("%d files in %d bytes", len(files), len(answer))
		}
	})
}
