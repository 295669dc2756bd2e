package demo

import "time"

// tickEvery is how often the disk is looked at, and progress told.
const tickEvery = 20 * time.Millisecond

// A sample is what the disk has written, in bytes, at a moment of the window.
type sample struct {
	at    time.Duration
	bytes uint64
}

type samples []sample

// A pace is bytes per second, and the time that they were measured in.
type pace struct {
	bytesPerSec float64
	over        time.Duration
}

// pace returns what the disk did per second. Writeback may come in requests of 8 MiB, of
// which each waits for the throttle as a whole and is then done at once, in pieces: at
// 10 MB/s a window of 2 s has two of them or three. Where the disk rests for a slice and
// more between them, the time counts from the end of the first to the end of the last.
func (s samples) pace() pace {
	if len(s) < 2 {
		return pace{}
	}
	from, to := s[0], s[len(s)-1]
	if ends := s.ends(); len(ends) > 1 {
		from, to = ends[0], ends[len(ends)-1]
	}
	over := to.at - from.at
	return pace{float64(to.bytes-from.bytes) / over.Seconds(), over}
}

// ends are the moments after which the disk did nothing for a slice. A pause that lasts until
// the end of the window does not count.
func (s samples) ends() (ends []sample) {
	last := s[0]
	grown := false
	for _, now := range s[1:] {
		switch {
		case now.bytes > last.bytes:
			last, grown = now, true
		case grown && now.at-last.at >= slice:
			ends, grown = append(ends, last), false
		}
	}
	return ends
}
