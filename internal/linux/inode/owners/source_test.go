package owners

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The object in the repository was made of the source beside it.
func TestObjectIsOfItsSource(t *testing.T) {
	const dir = "../../../../bpf"
	list, err := os.Open(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	listed := map[string]string{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		listed[name] = sum
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.[ch]"))
	if err != nil || len(sources) == 0 || len(sources) != len(listed) {
		t.Errorf("%d sources, %d listed (%v)", len(sources), len(listed), err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(text)); sum != listed[filepath.Base(source)] {
			t.Errorf("%s has changed: run make bpf", source)
		}
	}
}
