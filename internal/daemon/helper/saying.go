package helper

import (
	"strings"
	"sync"

	"github.com/weir-io/weir/internal/base/plain"
)

// A saying is the beginning of what a helper says beside its answers: why Go ended it.
type saying struct {
	mu   sync.Mutex
	text []byte
}

const sayingMost = 2048

func (s *saying) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, b[:min(len(b), sayingMost-len(s.text))]...)
	return len(b), nil
}

// String is the first line, behind a colon; empty: nothing was said.
func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(s.text)), "\n")
	if line == "" {
		return ""
	}
	return ": " + plain.Brief(line)
}
