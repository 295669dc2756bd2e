package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTestNames(t *testing.T) {
	const source = `package p
func TestB(t *testing.T) {}
func Testing() {}
func TestMain(m *testing.M) {}
func (s) TestMethod() {}
func BenchmarkA(b *testing.B) {}
func FuzzA(f *testing.F) {}
func Test_a(t *testing.T) {}
func ExampleShown() {
	// Output: x
}
func ExampleSilent() {}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := testNames(dir, []string{"p_test.go"})
	if want := []string{"TestB", "FuzzA", "Test_a", "ExampleShown"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v; want %v", names, err, want)
	}
	if _, err := testNames(dir, []string{"q_test.go"}); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A suite that go test -run would run a test of is never left out.
func TestSelector(t *testing.T) {
	for _, c := range []struct {
		run  string
		want []string
	}{
		{"", []string{"TestKill", "TestKills", "TestWhy"}},
		{"TestKill", []string{"TestKill", "TestKills"}},
		{"TestKills$/a|b", []string{"TestKills"}},
		{"^TestKill$|^TestWhy$", []string{"TestKill", "TestWhy"}},
		{"Test(Kill|Why)$/x/y", []string{"TestKill", "TestWhy"}},
		{`Test[K|/]ills`, []string{"TestKills"}},
		{`Kill\|`, nil},
		{"(", []string{"TestKill", "TestKills", "TestWhy"}},
	} {
		selected := selector(c.run)
		var got []string
		for _, name := range []string{"TestKill", "TestKills", "TestWhy"} {
			if selected(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("-run %q: %v, want %v", c.run, got, c.want)
		}
	}
}
