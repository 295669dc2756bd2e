package debian

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseControl(t *testing.T) {
	text := `# a comment
Types: deb
URIs: https://mirror.example/debian
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Package: linux-image-cloud-amd64
Depends: linux-image-6.12-cloud-amd64 (= 6.12.1-1)
`
	got, err := parseControl(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []stanza{
		{
			"types":     "deb",
			"uris":      "https://mirror.example/debian",
			"signed-by": "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc",
		},
		{
			"package": "linux-image-cloud-amd64",
			"depends": "linux-image-6.12-cloud-amd64 (= 6.12.1-1)",
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestParseControlRefuses(t *testing.T) {
	for _, text := range []string{" continued\n", "no field\n", ": no name\n", "A: 1\na: 2\n", "A: 1\n\n b\n"} {
		if got, err := parseControl(strings.NewReader(text)); err == nil {
			t.Errorf("%q: read as %q", text, got)
		}
	}
}

func FuzzParseControl(f *testing.F) {
	f.Add("Package: a\nDepends: b (>= 1) | c, d:any\n e [amd64]\n\nA: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		stanzas, err := parseControl(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range stanzas {
			if len(s) == 0 {
				t.Error("stanza without fields")
			}
			for field, value := range s {
				for _, name := range dependencies(value) {
					if name == "" || strings.ContainsAny(name, " \t\n,|([") {
						t.Errorf("field %q: dependency %q", field, name)
					}
				}
			}
		}
	})
}

func TestDependencies(t *testing.T) {
	got := dependencies("linux-base (>= 4.3~), linux-modules-7.2-cloud-amd64 (= 7.2-1),\n initramfs-tools | dracut, python3:any, libc6 [amd64] <!nocheck>,")
	want := []string{"linux-base", "linux-modules-7.2-cloud-amd64", "initramfs-tools", "python3", "libc6"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := dependencies(""); got != nil {
		t.Errorf("empty field: got %q", got)
	}
}
