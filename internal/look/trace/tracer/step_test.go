package tracer

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// Where the kernel's types have two functions of one name, the one that has the type of write(2)
// is taken, in whichever order they are: a program can go on to those that are loaded for write.
func TestFunctionOfOneName(t *testing.T) {
	registers := &btf.Pointer{Target: &btf.Struct{Name: "pt_regs", Size: 8}}
	result := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	usual := &btf.FuncProto{Return: result, Params: []btf.FuncParam{{Name: "regs", Type: registers}}}
	other := &btf.FuncProto{Return: result, Params: []btf.FuncParam{{Name: "__unused", Type: registers}}}
	types := typesOf(t, &btf.Func{Name: stepsHome, Type: usual}, &btf.Func{Name: "first", Type: usual}, &btf.Func{Name: "first", Type: other},
		&btf.Func{Name: "second", Type: other}, &btf.Func{Name: "second", Type: usual}, &btf.Func{Name: "alone", Type: other}, result)
	tracer := &Tracer{types: types}
	for name, want := range map[string]string{stepsHome: "regs", "first": "regs", "second": "regs", "alone": "__unused", "none": "", "long": ""} {
		got := ""
		if f := tracer.functionOf(name); f != nil {
			got = f.Type.(*btf.FuncProto).Params[0].Name
		}
		if got != want {
			t.Errorf("%s has the argument %q, want %q", name, got, want)
		}
	}
	if own, usual := tracer.functionOf("first"), tracer.functionOf(stepsHome); own.Type != usual.Type {
		t.Error("functions of one type have two")
	}
	if n := len(tracer.functionsOf("second")); n != 2 {
		t.Errorf("second has %d functions, want 2", n)
	}
}

// typesOf are types as the kernel has them.
func typesOf(t *testing.T, all ...btf.Type) *btf.Spec {
	t.Helper()
	b, err := btf.NewBuilder(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	types, err := btf.LoadSpecFromReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return types
}
