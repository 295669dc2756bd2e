// Package seats bounds the clients that an HTTP server has at one time. A client that comes where all seats are taken gets
// the seat of one that asks nothing: browsers and programs keep connections open for their next question, and would keep
// all others out. Nobody is sent away whose question is being answered.
package seats

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// askMost is how long a client that has a seat may take to ask, if others wait.
const askMost = 2 * time.Second

// A room is a listener with a bounded number of seats.
type room struct {
	net.Listener
	most int

	mu    sync.Mutex
	taken map[*seat]bool
	free  chan struct{} // has a token when a seat may be free

	ending sync.Once
	ended  chan struct{}
}

// A seat is the connection of a client. The room's lock is for what it has.
type seat struct {
	net.Conn
	room    *room
	answers int       // that are under way
	idle    bool      // all that was asked is answered
	since   time.Time // it came, or nothing is under way
}

// key is a seat's, in the context of its requests.
type key struct{}

// Limit has a server take at most so many clients of a listener at one time. It is called before the server serves what
// it returns, when the server has its handler.
func Limit(server *http.Server, l net.Listener, most int) net.Listener {
	r := &room{Listener: l, most: most, taken: map[*seat]bool{}, free: make(chan struct{}, 1), ended: make(chan struct{})}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if s, is := request.Context().Value(key{}).(*seat); is {
			s.answer(1)
			defer s.answer(-1)
		}
		handler.ServeHTTP(w, request)
	})
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if s := seatOf(c); s != nil {
			return context.WithValue(ctx, key{}, s)
		}
		return ctx
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if s := seatOf(c); s != nil {
			s.rest(state == http.StateIdle)
		}
	}
	return r
}

// seatOf is the seat of a connection that a server has; nil: none.
func seatOf(c net.Conn) *seat {
	if encrypted, is := c.(*tls.Conn); is {
		c = encrypted.NetConn()
	}
	s, _ := c.(*seat)
	return s
}

// Accept waits for a client, and then for its seat.
func (r *room) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := &seat{Conn: c, room: r}
	for !r.take(s) {
		select {
		case <-r.free:
		case <-time.After(askMost):
		case <-r.ended:
			_ = c.Close()
			return nil, net.ErrClosed
		}
	}
	return s, nil
}

// Close ends the listener.
func (r *room) Close() error {
	r.ending.Do(func() { close(r.ended) })
	return r.Listener.Close()
}

// take gives a client a seat, if there is one.
func (r *room) take(s *seat) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.taken) >= r.most {
		other := r.idlest()
		if other == nil {
			return false
		}
		delete(r.taken, other)
		_ = other.Conn.Close() // what it says of its own end is of no use
	}
	s.since = time.Now()
	r.taken[s] = true
	return true
}

// idlest is who has asked nothing for the longest time, or does not come to ask; nil: nobody.
func (r *room) idlest() (one *seat) {
	for s := range r.taken {
		if s.answers > 0 || !s.idle && time.Since(s.since) < askMost {
			continue
		}
		if one == nil || s.since.Before(one.since) {
			one = s
		}
	}
	return one
}

// wake has one who waits look again.
func (r *room) wake() {
	select {
	case r.free <- struct{}{}:
	default:
	}
}

// answer notes that an answer begins (1) or ends (-1).
func (s *seat) answer(more int) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.answers += more
	s.since = time.Now()
}

// rest notes whether all that was asked is answered.
func (s *seat) rest(idle bool) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.idle, s.since = idle, time.Now()
	if idle {
		s.room.wake()
	}
}

// Close frees the seat.
func (s *seat) Close() error {
	s.room.mu.Lock()
	delete(s.room.taken, s)
	s.room.wake()
	s.room.mu.Unlock()
	return s.Conn.Close()
}
