package grpc

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// What another encoder writes is read, with its table and its codes; what weir writes, another
// decoder reads.
func TestHeaders(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	blocks := [][]Pair{
		{{":status", "200"}, {"content-type", "application/grpc"}, {"x", string(every)}},
		{{":status", "404"}, {"content-type", "application/grpc"}, {"x", string(every)}, {"long", strings.Repeat("a", 5000)}},
		{{"grpc-status", "5"}, {"grpc-message", "no container with id \u00fc: not found"}, {"long", strings.Repeat("b", 300)}},
		{{"grpc-status", "5"}, {"grpc-message", "no container with id \u00fc: not found"}, {"", ""}},
	}
	var out bytes.Buffer
	encoder, decoder := hpack.NewEncoder(&out), headerDecoder{max: headerTableMax}
	for i, block := range blocks {
		out.Reset()
		if i == 2 {
			encoder.SetMaxDynamicTableSize(100)
		}
		var own []byte
		for _, f := range block {
			if err := encoder.WriteField(hpack.HeaderField{Name: f.Name, Value: f.Value}); err != nil {
				t.Fatal(err)
			}
			own = appendField(own, f)
		}
		if got, err := decoder.decode(out.Bytes()); err != nil || !reflect.DeepEqual(got, block) {
			t.Errorf("block %d: %.300q, %v", i, got, err)
		}
		theirs, err := hpack.NewDecoder(headerTableMax, nil).DecodeFull(own)
		if err != nil || len(theirs) != len(block) {
			t.Fatalf("block %d: %v, %v", i, theirs, err)
		}
		for j, f := range theirs {
			if f.Name != block[j].Name || f.Value != block[j].Value || !f.Sensitive {
				t.Errorf("block %d: %+v", i, f)
			}
		}
	}
}

// FuzzHeaders: what another decoder takes is taken alike. (A decoder may take more: weir does not
// mind a size of the table that comes late.)
func FuzzHeaders(f *testing.F) {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	for _, p := range []Pair{{":status", "200"}, {"grpc-message", "not found"}, {"grpc-message", "not found"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: p.Name, Value: p.Value}); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(out.Bytes())
	f.Add([]byte{0x3f, 0xe1, 0x1f, 0x40, 0x01, 'a', 0x81, 0xff, 0xbe})
	f.Fuzz(func(t *testing.T, block []byte) {
		if len(block) > headerListMax {
			return
		}
		theirs, refused := hpack.NewDecoder(headerTableMax, nil).DecodeFull(block)
		decoder := headerDecoder{max: headerTableMax}
		ours, err := decoder.decode(block)
		if refused != nil {
			return
		}
		size := 0
		for _, f := range theirs {
			size += len(f.Name) + len(f.Value)
		}
		if size > headerListMax {
			return
		}
		if err != nil || len(ours) != len(theirs) {
			t.Fatalf("%x: %q, %v; want %v", block, ours, err, theirs)
		}
		for i, f := range theirs {
			if ours[i] != (Pair{f.Name, f.Value}) {
				t.Errorf("%x: %q, want %v", block, ours[i], f)
			}
		}
	})
}
