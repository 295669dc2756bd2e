package routes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/agent/stream"
	"github.com/weir-io/weir/internal/api"
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

// open lets everybody reach the sockets.
func (s *served) open() {
	s.t.Helper()
	for dir := s.dir; dir != filepath.Dir(dir) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			s.t.Fatal(err)
		}
	}
}

// asUser runs a test of this package as another user, and returns what it printed.
func asUser(uid uint32, groups []uint32, test, variable string) (string, error) {
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+test+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), variable)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const changerVariable = "WEIR_TEST_CHANGER" // the directory of the sockets

// TestChanger is the user of TestMayChangeAlone.
func TestChanger(t *testing.T) {
	dir := os.Getenv(changerVariable)
	if dir == "" {
		return // only that test starts it
	}
	var doc api.Agent
	err := Ask(t.Context(), dir, Status, &doc)
	fmt.Printf("told of %d targets, %v\n", len(doc.Targets), err)
	source := stream.New(stream.Options{Socket: filepath.Join(dir, ReadSocket), Also: filepath.Join(dir, ChangeSocket),
		Open: func() (stream.Own, error) { return nil, errors.New("it has to read by itself") }})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reading, err := source.Next(ctx)
	fmt.Printf("read by %q, %v\n", reading.Source.From, errors.Join(err, source.Close()))
}

// Who may change may read: a user in that group alone is answered, too. In none nobody is.
func TestMayChangeAlone(t *testing.T) {
	lab.Unit(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const readers, changers, uid = 54320, 54321, 54322
	gid := changers
	s := serve(t, newFake(), &gid)
	s.open()
	if err := os.Lchown(s.read, -1, readers); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		groups []uint32
		want   []string
	}{
		{[]uint32{readers}, []string{"told of 2 targets, <nil>\n", `read by "weird", <nil>`}},
		{[]uint32{changers}, []string{"told of 2 targets, <nil>\n", `read by "weird", <nil>`}},
		{nil, []string{"told of 0 targets, ask weird at " + s.change + ": permission denied", `read by "", it has to read by itself`}},
	} {
		out, err := asUser(uid, c.groups, "TestChanger", changerVariable+"="+s.dir)
		for _, want := range c.want {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("groups %v: %v\n%s, want %s", c.groups, err, out, want)
			}
		}
	}
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
	s.open()
	for path := range map[string]bool{s.read: true, s.change: true} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("%v, %v", info, err)
		}
	}
	as := func(groups []uint32, socket, method, path string) (string, error) {
		return asUser(uid, groups, "TestMember", memberVariable+"="+socket+" "+method+" "+path)
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
