package pacer

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// One who says nothing, one who says nonsense and one who says too much keep nobody from
// being answered.
func TestAskers(t *testing.T) {
	dir := state.At(t.TempDir())
	if err := os.MkdirAll(dir.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := listen(filepath.Join(dir.Path(), socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, text := range []string{"", "{\n", strings.Repeat("x", 64<<10)} {
		conn, err := net.Dial("unix", a.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	answers := make(chan answer, 1)
	go func() {
		got, err := Client{State: dir}.once(ask{Remove: &Place{Path: "/a"}}, startMax)
		if err != nil {
			t.Error(err)
		}
		answers <- got
	}()
	var asked []string
	for end := clockNow() + 10*time.Second; clockNow() < end; {
		files := a.poll(nil)
		if !pollUntil(clockNow()+10*time.Millisecond, files) {
			select {
			case got := <-answers:
				if len(asked) != 1 || asked[0] != "/a" || got.Note != "yes" {
					t.Errorf("asked %q, answered %+v", asked, got)
				}
				if len(a.all) != 2 { // who says nothing, and who may go on
					t.Errorf("%d are waited for, want 2", len(a.all))
				}
				a.all[0].since -= startMax
				if a.hurry(); len(a.all) != 1 {
					t.Errorf("%d are waited for after one has taken too long, want 1", len(a.all))
				}
				return
			default:
				continue
			}
		}
		a.serve(files, func(q ask) answer {
			asked = append(asked, q.Remove.Path)
			return answer{Note: "yes"}
		})
	}
	t.Fatal("nobody was answered")
}

// A pacer whose socket somebody has removed makes it again. It leaves the path alone where that is
// another's: where it has no lock there, and at its end.
func TestSocketIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), socketName)
	a, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	locked := false
	a.locked = func() bool { return locked }
	remove()
	if a.remain(remainEvery); a.there() {
		t.Error("it made its socket in a directory whose lock it has not")
	}
	locked = true
	if a.remain(2*remainEvery - 1); a.there() {
		t.Error("it looked again at once")
	}
	if a.remain(2 * remainEvery); !a.there() {
		t.Error("it has no socket")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	remove()
	other, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if a.close(); !other.there() {
		t.Error("it removed another pacer's socket")
	}
	if other.close(); other.there() {
		t.Error("it left its socket")
	}
}

// Where a pacer runs that has no socket, the error says what to do.
func TestUnheard(t *testing.T) {
	c := Client{State: state.At(t.TempDir())}
	_, down := c.once(ask{}, startMax)
	if err := c.unheard(down); !errors.Is(err, fs.ErrNotExist) || err.Error() != down.Error() {
		t.Errorf("no pacer: %v", err)
	}
	lock, err := c.State.Own(lockName)
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Unlock()
	if !lock.IsOn(filepath.Join(c.State.Path(), lockName)) || lock.IsOn(c.State.Path()) {
		t.Error("the lock does not know its file")
	}
	if err := c.unheard(down); !strings.HasSuffix(err.Error(), `end it (the process "weir __pacer"), and weir starts another`) {
		t.Error(err)
	}
	if err := c.unheard(nil); err != nil {
		t.Error(err)
	}
}

// As long as it runs, a pacer looks for its socket.
func TestRunKeepsSocket(t *testing.T) {
	s := newHost(t, cgroupfs.V1).server()
	if err := os.Remove(s.askers.path); err != nil {
		t.Fatal(err)
	}
	if err := s.run(t.Context()); err != nil { // until it was idle for long enough
		t.Fatal(err)
	}
	if !s.askers.there() {
		t.Error("it has no socket")
	}
}
