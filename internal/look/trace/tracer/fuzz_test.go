package tracer

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// FuzzSymbols: whoever loads a module or a BPF program names functions. What is read is sorted.
func FuzzSymbols(f *testing.F) {
	f.Add("ffffffff81000000 T _text\nffffffff81000100 t io_schedule\t[x]\n")
	f.Add("0000000000000000 T a\n")
	f.Add("x T a")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readSymbols(strings.NewReader(text))
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(all, func(a, b symbol) int { return cmp.Compare(a.address, b.address) }) {
			t.Errorf("%v is not sorted", all)
		}
		_, _ = placesOf(all) // must end
	})
}
