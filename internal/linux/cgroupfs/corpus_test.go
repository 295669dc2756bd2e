package cgroupfs

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weir-io/weir/internal/limit"
)

// corpusLeast is how many files there are at least.
const corpusLeast = 30

// TestCorpus reads files of rules and counters as kernels of many hosts print them.
func TestCorpus(t *testing.T) {
	const file = "testdata/corpus.txtar"
	corpus, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(corpus.Files) / 2; n < corpusLeast {
		t.Errorf("%d files", n)
	}
	for i := 0; i+1 < len(corpus.Files); i += 2 {
		in, want := corpus.Files[i], &corpus.Files[i+1]
		if want.Name != in.Name+".want" {
			t.Fatalf("%s has no answer", in.Name)
		}
		got := spell(t, path.Dir(in.Name), string(in.Data))
		if os.Getenv("WEIR_UPDATE_CORPUS") != "" {
			want.Data = []byte(got)
		} else if got != string(want.Data) {
			t.Errorf("%s: got\n%swant\n%s", in.Name, got, want.Data)
		}
	}
	if os.Getenv("WEIR_UPDATE_CORPUS") != "" {
		if err := os.WriteFile(file, txtar.Format(corpus), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// spell reads a file as a group's, and says what is in it.
func spell(t *testing.T, file, text string) string {
	t.Helper()
	rules := func(all []Rule, err error) string {
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		out := "no rule\n"
		for i, r := range all {
			if i == 0 {
				out = ""
			}
			out += ruleLineV2(r.Device, r.Limit) + "\n"
		}
		return out
	}
	stats := func(all []Stat, err error) string {
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		out := "nothing is counted\n"
		for i, s := range all {
			if i == 0 {
				out = ""
			}
			out += fmt.Sprintf("%s read %d bytes in %d, wrote %d bytes in %d\n", s.Device, s.ReadBytes, s.Reads, s.WrittenBytes, s.Writes)
		}
		return out
	}
	switch file {
	case "io.stat":
		return stats(parseStatV2(text))
	case "io.max":
		return rules(parseRulesV2(text))
	case bytesFileV1:
		return stats(parseBytesV1(text))
	case opsFileV1:
		return stats(parseStatV1(nil, text, func(s *Stat) (read, write *uint64) { return &s.Reads, &s.Writes }))
	}
	key := slices.Index(filesV1[:], file)
	if key < 0 {
		t.Fatalf("no file of a group is called %s", strings.TrimSpace(file))
	}
	return rules(parseRulesV1(nil, limit.Key(key), text))
}
