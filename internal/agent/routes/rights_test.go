package routes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/lab"
)

const memberVariable = "WEIR_TEST_MEMBER" // SOCKET METHOD PATH

// TestMember is the user of TestRights.
func TestMember(t *testing.T) {
	words := strings.Fields(os.Getenv(memberVariable))
	if len(words) != 3 {
		return // only TestRights starts it
	}
	s := &served{t: t}
	if f, err := os.Open(words[0]); err == nil {
		_ = f.Close()
		t.Fatal("a socket was opened as a file")
	}
	status, text := s.ask(words[0], words[1], words[2], "")
	fmt.Printf("answer %d %s\n", status, text)
}

// The kernel lets users connect by the groups that they are in: with the group for reading they can
// read and not change, with none they can do neither.
func TestRights(t *testing.T) {
	lab.Unit(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const group, uid = 54321, 54322
	gid := group
	f := newFake()
	s := serve(t, f, &gid)
	for dir := s.dir; dir != filepath.Dir(dir) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	for path := range map[string]bool{s.read: true, s.change: true} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("%v, %v", info, err)
		}
	}
	as := func(groups []uint32, socket, method, path string) (string, error) {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestMember$", "-test.v")
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), memberVariable+"="+socket+" "+method+" "+path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, c := range []struct {
		groups       []uint32
		socket       string
		method, path string
		want         string
	}{
		{[]uint32{group}, s.read, "GET", "/status", "answer 200 "},
		{[]uint32{group}, s.read, "POST", "/reload", "answer 403 "},
		{[]uint32{group}, s.change, "POST", "/reload", "answer 200 "},
		{nil, s.read, "GET", "/status", "permission denied"},
		{nil, s.change, "POST", "/reload", "permission denied"},
	} {
		out, err := as(c.groups, c.socket, c.method, c.path)
		if !strings.Contains(out, c.want) || (err != nil) != (c.groups == nil) {
			t.Errorf("groups %v, %s %s: %v\n%s, want %s", c.groups, c.method, c.path, err, out, c.want)
		}
	}
	if want := fmt.Sprint("uid ", uid); len(f.by) != 1 || f.by[0] != want {
		t.Errorf("reloaded by %q, want %q", f.by, want)
	}
	if status, _ := s.ask(s.change, "POST", "/reload", ""); status != 200 { // root, in no such group
		t.Error(status)
	}
}
