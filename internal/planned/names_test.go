package planned

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/plans/planfile"
)

// An engine that hangs keeps nobody from ending.
func TestNamesBesideAnEngineThatHangs(t *testing.T) {
	dir, asked := t.TempDir(), make(chan bool, 1)
	if err := hosttest.Make(dir, "v2"); err != nil {
		t.Fatal(err)
	}
	folder, socket := filepath.Join(dir, "etc/weir/plans.d"), filepath.Join(dir, "docker.sock")
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "a.yaml"), []byte("plans: {small: {write: 1MB/s}}\nassign: [{docker: web, plan: small}]\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // it never answers
			select {
			case asked <- true:
			default:
			}
		}
	}()
	n := NewNames(func() (*host.Host, error) {
		return host.Open(host.Options{Root: dir, Sockets: map[string]string{"docker": "unix://" + socket}})
	}, planfile.Read)
	n.Refresh(&watch.Snapshot{Groups: []*watch.Group{{Path: "/web", Target: "docker:web"}}})
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("docker is not asked")
	}
	began := time.Now()
	n.Close()
	if took := time.Since(began); took > namesMost/2 {
		t.Errorf("it took %v", took)
	}
}
