package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSystemSource(t *testing.T) {
	const vendor = "Types: deb\nURIs: https://vendor.example/apt\nSuites: nodistro\nComponents: main\n"
	tests := []struct {
		name  string
		files map[string]string
		want  source
		err   string
	}{
		{
			name: "deb822, security first",
			files: map[string]string{
				"sources.list.d/a-vendor.sources": vendor,
				"sources.list.d/debian.sources": "Types: deb\nURIs: http://mirror.example/debian-security\n" +
					"Suites: bookworm-security\nComponents: main\n\n" +
					"Types: deb deb-src\nURIs: http://mirror.example/debian http://other.example/debian\n" +
					"Suites: bookworm bookworm-updates\nComponents: main contrib\nSigned-By: /keys/debian.gpg\n",
			},
			want: source{uri: "http://mirror.example/debian", signedBy: "/keys/debian.gpg"},
		},
		{
			name: "one-line style",
			files: map[string]string{
				"sources.list": "# deb http://old.example/debian sid main\n" +
					"deb-src http://mirror.example/debian trixie main\n" +
					"deb [arch=amd64 Signed-By=/Keys/d.gpg] http://mirror.example/debian trixie-updates main # why\n",
			},
			want: source{uri: "http://mirror.example/debian", signedBy: "/Keys/d.gpg"},
		},
		{
			name:  "one-line style without options",
			files: map[string]string{"sources.list": "deb  http://mirror.example/debian   stable   contrib main\n"},
			want:  source{uri: "http://mirror.example/debian"},
		},
		{
			name: "disabled and backed up",
			files: map[string]string{
				"sources.list.d/a.sources":     "Enabled: no\nTypes: deb\nURIs: http://a.example\nSuites: trixie\nComponents: main\n",
				"sources.list.d/b.list.save":   "deb http://b.example trixie main\n",
				"sources.list.d/vendor.list":   "deb http://c.example/linux/debian trixie stable\n",
				"sources.list.d/other.list":    "deb http://d.example/apt trixie-pgdg main\n",
				"sources.list.d/vendor.source": vendor,
			},
			err: "find Debian mirror",
		},
		{
			name:  "broken",
			files: map[string]string{"sources.list.d/a.sources": "Types deb\n"},
			err:   "a.sources: parse control data: line 1",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			etc := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(etc, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := systemSource(etc)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %+v, %v; want error %q", got, err, test.err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestSourceEntry(t *testing.T) {
	src := source{uri: "http://mirror.example/debian", signedBy: "\n KEY\n ."}
	stanzas, err := parseControl(strings.NewReader(src.entry("sid", "")))
	if err != nil || len(stanzas) != 1 {
		t.Fatalf("got %v, %v", stanzas, err)
	}
	if got := stanzas[0]; got["suites"] != "sid" || got["signed-by"] != src.signedBy {
		t.Errorf("got %q", got)
	}
	if entry := src.entry("sid", "/k.gpg"); !strings.Contains(entry, "Signed-By: /k.gpg\n") {
		t.Errorf("keyring not used in %q", entry)
	}
}
