// Package pacertest stands in for the pacer of a copy of a machine. It notes what it is asked, and
// holds nothing.
package pacertest

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/state"
)

// A Pacer has been asked for jobs.
type Pacer struct {
	mu      sync.Mutex
	asked   []hold.Pace
	cells   []string
	refused string
}

// Refuse makes it answer everything with an error.
func (p *Pacer) Refuse(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = why
}

// Asked is what it was asked since the last call, as a dry run has it, and the paths of the cells
// in which commands will start.
func (p *Pacer) Asked() (asked []hold.Pace, cells []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, cells, p.asked, p.cells = p.asked, p.cells, nil, nil
	return asked, cells
}

// Serve answers at the pacer's socket until the end of the test.
func Serve(t testing.TB, dir state.Dir) *Pacer {
	t.Helper()
	if err := os.MkdirAll(dir.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir.Path(), "pacer.sock"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Pacer{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			if err := p.answer(conn); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return p
}

func (p *Pacer) answer(conn net.Conn) error {
	defer conn.Close()
	var ask struct {
		Add    *pacer.Job   `json:"add"`
		Remove *pacer.Place `json:"remove"`
	}
	if err := json.NewDecoder(conn).Decode(&ask); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch j := ask.Add; {
	case j != nil:
		p.asked = append(p.asked, hold.Pace{Cgroup: j.Limited.Path, WBPS: j.WBPS, Devices: j.Devices, Escapes: j.Count == pacer.CountEscaped})
		if j.Cell.Path != "" {
			p.cells = append(p.cells, j.Cell.Path)
		}
	case ask.Remove != nil:
		p.asked = append(p.asked, hold.Pace{Cgroup: ask.Remove.Path})
	}
	return json.NewEncoder(conn).Encode(struct {
		Error string `json:"error,omitempty"`
	}{p.refused})
}
