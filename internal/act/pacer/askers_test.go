package pacer

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
