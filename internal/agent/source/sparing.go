package source

import (
	"cmp"
	"sync"
	"time"
)

// A sparing has something done that costs much: at once when somebody asks after a quiet time. Who asks again and again
// has it done ever more rarely. What was asked for is done in the end, once for all who asked until then. The zero sparing
// does it once a second at most.
type sparing struct {
	// least is the pause after the first time. It doubles with each time, up to most. After a time without, as long as
	// most, it begins anew.
	least, most time.Duration

	mu    sync.Mutex
	timer *time.Timer // that does it; nil: nobody has asked since it was done
	done  time.Time   // when it was done last
	pause time.Duration
	ended bool
}

// ask has it done. It never waits.
func (s *sparing) ask(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil || s.ended {
		return
	}
	least := cmp.Or(s.least, time.Second)
	most := max(least, s.most)
	if time.Since(s.done) >= most {
		s.pause = 0
	}
	wait := time.Until(s.done.Add(s.pause))
	s.pause = min(max(2*s.pause, least), most)
	s.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		s.timer, s.done = nil, time.Now()
		ended := s.ended
		s.mu.Unlock()
		if !ended {
			do()
		}
	})
}

// end has nothing done any more.
func (s *sparing) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
