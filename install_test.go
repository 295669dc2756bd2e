package weir_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// installed lists the files below a directory, with their modes.
func installed(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		all = append(all, strings.TrimPrefix(path, dir)+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestInstall installs into a directory, and removes all of it again.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir, built := t.TempDir(), t.TempDir()
	makeTarget := func(target string) {
		t.Helper()
		cmd := exec.Command("make", "-s", target, "OUT="+built, "DESTDIR="+dir, "PREFIX=/usr")
		cmd.Env = append(os.Environ(), "MAKEFLAGS=") // not those of a make that runs the tests
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	makeTarget("install")
	want := []string{
		"/usr/bin/weir -rwxr-xr-x", "/usr/bin/weird -rwxr-xr-x",
		"/usr/share/bash-completion/completions/weir -rw-r--r--", "/usr/share/bash-completion/completions/weird -rw-r--r--",
		"/usr/share/fish/vendor_completions.d/weir.fish -rw-r--r--", "/usr/share/fish/vendor_completions.d/weird.fish -rw-r--r--",
		"/usr/share/zsh/site-functions/_weir -rw-r--r--", "/usr/share/zsh/site-functions/_weird -rw-r--r--",
	}
	pages, err := filepath.Glob("docs/man/*.1")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d manual pages: %v", len(pages), err)
	}
	for _, page := range pages {
		want = append(want, "/usr/share/man/man1/"+filepath.Base(page)+" -rw-r--r--")
	}
	slices.Sort(want)
	if got := installed(t, dir); !slices.Equal(got, want) {
		t.Errorf("installed are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, program := range []string{"weir", "weird"} {
		out, err := exec.Command(filepath.Join(dir, "usr/bin", program), "version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), program+" 0.") {
			t.Errorf("%s version: %v: %s", program, err, out)
		}
		// A shell loads what was installed, and it completes this program.
		for file, mark := range map[string]string{
			"bash-completion/completions/" + program:         "complete -o default -F __start_" + program + " " + program,
			"zsh/site-functions/_" + program:                 "#compdef " + program,
			"fish/vendor_completions.d/" + program + ".fish": "complete -c " + program,
		} {
			text, err := os.ReadFile(filepath.Join(dir, "usr/share", file))
			if err != nil || !strings.Contains(string(text), mark) {
				t.Errorf("%s has no line %q (%v)", file, mark, err)
			}
		}
		if out, err := exec.Command("bash", "-n", filepath.Join(dir, "usr/share/bash-completion/completions", program)).CombinedOutput(); err != nil {
			t.Errorf("bash does not read its completion of %s: %v: %s", program, err, out)
		}
	}
	makeTarget("uninstall")
	if left := installed(t, dir); len(left) > 0 {
		t.Errorf("uninstall leaves %s", strings.Join(left, ", "))
	}
}
