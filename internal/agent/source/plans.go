package source

import (
	"sync"

	"github.com/weir-io/weir/internal/plans"
)

// Plans are the configuration that is in force. It is exchanged whole.
type Plans struct {
	mu   sync.Mutex
	now  *plans.Config
	next chan struct{} // closed with the next exchange
}

// NewPlans begins with a configuration.
func NewPlans(c *plans.Config) *Plans { return &Plans{now: c, next: make(chan struct{})} }

// Now is the configuration, and a channel that is closed when another one takes its place.
func (p *Plans) Now() (c *plans.Config, next <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.next
}

// Set puts a configuration into force.
func (p *Plans) Set(c *plans.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = c
	close(p.next)
	p.next = make(chan struct{})
}
