package tempdir

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asOwner is set in the environment of this test binary when it is to make a folder
// and wait to be killed.
const asOwner = "WEIR_TEMPDIR_OWNER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(asOwner); parent != "" {
		owner(parent)
	}
	os.Exit(m.Run())
}

func owner(parent string) {
	d, err := Make(parent, "run-")
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Path, "disk"), nil, 0o600)
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(d.Path + "\n")
	select {}
}

// TestKilledOwnerIsSwept kills a process that owns a folder.
func TestKilledOwnerIsSwept(t *testing.T) {
	parent := t.TempDir()
	other := filepath.Join(parent, "other-1")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), asOwner+"="+parent)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	theirs := strings.TrimSpace(line)

	alive := make1(t, parent)
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("the folder of a living owner: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the owner ended by itself")
	}
	make1(t, parent)
	if _, err := os.Stat(theirs); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a dead owner: %v", err)
	}
	for _, path := range []string{alive.Path, other} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestKeep(t *testing.T) {
	parent := t.TempDir()
	d := make1(t, parent)
	kept := filepath.Join(parent, "kept")
	if err := d.Keep(kept); err != nil {
		t.Fatal(err)
	}
	make1(t, parent)
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("kept: %v, %v", info, err)
	}
}

// TestSweptBeforeItIsLocked: who lost his folder to a sweep does not own it.
func TestSweptBeforeItIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run-1")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	first, err := own(path)
	if err != nil || first == nil {
		t.Fatalf("own a folder: %v, %v", first, err)
	}
	if again, err := own(path); err != nil || again != nil {
		t.Errorf("own another's folder: %v, %v", again, err)
	}
	if err := errors.Join(os.Remove(path), first.Close()); err != nil {
		t.Fatal(err)
	}
	if gone, err := own(path); err != nil || gone != nil {
		t.Errorf("own a folder that went away: %v, %v", gone, err)
	}
}

func make1(t *testing.T, parent string) *Dir {
	t.Helper()
	d, err := Make(parent, "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return d
}
