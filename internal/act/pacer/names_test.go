package pacer

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/state"
)

// Names of files that are not UTF-8 are the same on both sides of the pacer's socket.
func TestNamesThatAreNotUTF8(t *testing.T) {
	s := state.At(t.TempDir())
	if err := os.MkdirAll(s.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(s.Path(), socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	question := ask{Add: &Job{Limited: Place{Path: "/\xff"}, KeptIn: []string{"/a", "/\xfe"}}}
	want := answer{Seen: &Seen{Files: []escape.File{{Path: "/data/\xff"}}}}
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		file, err := conn.(*net.UnixConn).File()
		if err != nil {
			return
		}
		defer file.Close()
		c := asker{fd: int(file.Fd())}
		for !c.read(func(got ask) answer {
			if !reflect.DeepEqual(got, question) {
				return answer{Error: "another question"}
			}
			return want
		}) {
			time.Sleep(time.Millisecond)
		}
	}()
	got, err := (Client{State: s}).once(question, 10*time.Second)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
