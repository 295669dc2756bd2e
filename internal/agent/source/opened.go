package source

import (
	"context"
	"time"

	"github.com/weir-io/weir/internal/host"
)

// keepOpen opens the host, and anew from time to time: a hierarchy may be mounted at any time.
func (b *Births) keepOpen(ctx context.Context) {
	reopen := time.NewTicker(openMost)
	defer reopen.Stop()
	for {
		b.exchange(b.open())
		select {
		case <-ctx.Done():
			b.exchange(nil)
			return
		case <-reopen.C:
		}
	}
}

// exchange has births served on another host from now on.
func (b *Births) exchange(h *host.Host) {
	b.serving.Lock()
	was := b.host
	b.host = h
	b.serving.Unlock()
	b.close(was)
}

// open opens the host; nil: it cannot be opened now.
func (b *Births) open() *host.Host {
	h, err := b.Options.Open()
	b.news(err)
	if err != nil {
		return nil
	}
	return h
}

func (b *Births) close(h *host.Host) {
	if h != nil {
		b.news(h.Close())
	}
}
