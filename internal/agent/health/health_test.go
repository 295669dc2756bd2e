package health

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/lab"
)

// most is far longer than anything here takes.
const most = 20 * time.Second

// serving is a daemon that answers.
type serving struct {
	t      *testing.T
	path   string
	client *http.Client
	stop   context.CancelFunc
	ended  chan error
	more   Documents
}

func serve(t *testing.T) *serving { return serveMore(t, nil) }

func serveMore(t *testing.T, more Documents) *serving {
	t.Helper()
	s := &serving{t: t, more: more, path: filepath.Join(t.TempDir(), "h.sock"), ended: make(chan error, 1)}
	l, err := Listen(s.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.ended <- Serve(ctx, l, "1.2.3", s.more) }()
	s.client = &http.Client{Timeout: most, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.path)
		}}}
	t.Cleanup(func() { s.end() })
	return s
}

// end ends the daemon, once.
func (s *serving) end() {
	s.t.Helper()
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Error(err)
		}
	case <-time.After(most):
		s.t.Error("it does not end")
	}
	if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("the socket is still there: %v", err)
	}
}

// ask returns the status of an answer, and its document.
func (s *serving) ask(method, path string, document any) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://weird"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(document); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func TestAnswers(t *testing.T) {
	lab.Unit(t)
	s := serve(t)
	var health api.Health
	r := s.ask(http.MethodGet, "/health", &health)
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" || health.Schema.Schema != "weir.health/1" ||
		health.Version != "1.2.3" || health.PID != os.Getpid() || health.Up <= 0 || health.Up > most.Seconds() {
		t.Errorf("%s: %+v", r.Status, health)
	}
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/", 404, `"/": nothing is there; /health is`},
		{"GET", "/health/x", 404, `"/health/x": nothing is there; /health is`},
		{"POST", "/health", 405, "POST /health: this can only be read (GET)"},
	} {
		var refused api.Error
		if r := s.ask(c.method, c.path, &refused); r.StatusCode != c.status || refused.Error != c.says || refused.Schema.Schema != "weir.error/1" {
			t.Errorf("%s %s: %s: %+v", c.method, c.path, r.Status, refused)
		}
	}
}

// A client that says nothing does not keep the daemon from ending.
func TestEndsBesideASilentClient(t *testing.T) {
	lab.Unit(t)
	s := serve(t)
	for _, says := range []string{"", "GET /health HTTP/1.1\r\n"} {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
	}
	s.ask(http.MethodGet, "/health", &api.Health{})
	s.end()
}

// Only the owner may connect, whatever the umask is. (The umask is the process's: no other test
// runs beside this one.)
func TestMode(t *testing.T) {
	lab.Unit(t)
	for _, umask := range []int{0, 0o022, 0o077} {
		before := unix.Umask(umask)
		l, err := Listen(filepath.Join(t.TempDir(), "h.sock"))
		unix.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(l.path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("umask %o: %v, %v", umask, info.Mode(), err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// stale leaves a socket at which nobody answers.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
}

func TestReplacesAStaleSocket(t *testing.T) {
	lab.Unit(t)
	path := filepath.Join(t.TempDir(), "h.sock")
	stale(t, path)
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

// Of many that start at once beside a stale socket, one gets it, and its socket stays.
func TestOneGetsTheSocket(t *testing.T) {
	lab.Unit(t)
	const rounds, all = 100, 8
	for range rounds {
		path := filepath.Join(t.TempDir(), "h.sock")
		stale(t, path)
		got, start := make(chan *Listener), make(chan bool)
		for range all {
			go func() {
				<-start
				l, err := Listen(path)
				if err != nil {
					l = nil
				}
				got <- l
			}()
		}
		close(start)
		var first *Listener
		for range all {
			if l := <-got; l != nil && first != nil {
				t.Fatal("two have it")
			} else if l != nil {
				first = l
			}
		}
		if first == nil {
			t.Fatal("nobody has it")
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A socket that another daemon has put there since is not this one's to remove.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	lab.Unit(t)
	path := filepath.Join(t.TempDir(), "h.sock")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".moved"); err != nil { // so that its inode is not given again
		t.Fatal(err)
	}
	second, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the second no longer answers: %v", err)
	}
	if err := errors.Join(conn.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	taken, err := Listen(filepath.Join(dir, "taken"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600), os.Symlink("file", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "dir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, says string
		class      fault.Class
	}{
		{"", "the path of the socket is empty", fault.WrongUse},
		{dir + "/" + strings.Repeat("x", 107), "has at most 107 bytes", fault.WrongUse},
		{dir + "/none/h.sock", "none/h.sock: no such file or directory", fault.NotDone},
		{dir + "/file/h.sock", "file/h.sock: not a directory", fault.NotDone},
		{dir + "/file", "which is no socket", fault.NotDone},
		{dir + "/link", "which is no socket", fault.NotDone},
		{dir + "/dir", "which is no socket", fault.NotDone},
		{dir + "/taken", "another process answers there", fault.NotDone},
	} {
		l, err := Listen(c.path)
		if err == nil {
			_ = l.Close()
			t.Errorf("%q: it listens", c.path)
			continue
		}
		if !strings.Contains(err.Error(), c.says) || fault.ClassOf(err) != c.class || strings.Count(err.Error(), c.path) > 1 && c.path != "" {
			t.Errorf("%q: %v (class %d), want %q", c.path, err, fault.ClassOf(err), c.says)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "kept" {
		t.Errorf("the file has %q now (%v)", text, err)
	}
}

func TestAsk(t *testing.T) {
	lab.Unit(t)
	s := serveMore(t, Documents{StatusRoute: func() any { return api.ErrorOf(errors.New("as a document")) }})
	var status api.Error
	if err := Ask(t.Context(), s.path, StatusRoute, &status); err != nil || status.Error != "as a document" {
		t.Errorf("%+v, %v", status, err)
	}
	if err := Ask(t.Context(), s.path, "/x", &status); err == nil || !strings.Contains(err.Error(), "/health and /status are") {
		t.Error(err)
	}
	s.end()
	if err := Ask(t.Context(), s.path, StatusRoute, &status); err == nil || !strings.Contains(err.Error(), "weird does not run") {
		t.Error(err)
	}
	stale(t, s.path)
	if err := Ask(t.Context(), s.path, StatusRoute, &status); err == nil || !strings.Contains(err.Error(), "weird does not run") {
		t.Error(err)
	}
}
