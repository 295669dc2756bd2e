// Package stream follows what weird run tells of groups each second, at its socket for reading. It is
// for weir top, which has those readings where weird runs, and reads by itself where it does not.
//
// Whoever answers at the socket may be older, newer, slow or hostile: each answer is bounded in size and
// time, and whatever is wrong with it is a reason to read by oneself, never an error of weir top. The
// kernel checks who may connect; this package has no rights of its own. It is for cmd/weird, because
// net/http is too heavy for weir.
package stream

import "time"

// Route is where weird tells: GET /top/events.
const Route = "/top/events"

// Every is the time between two readings.
const Every = time.Second

const (
	// answerMost bounds the time until weird begins to answer.
	answerMost = 2 * time.Second
	// silentMost is how long weird may tell nothing.
	silentMost = 4 * time.Second
	// readingLeast is the time between two readings that are taken. Who tells more often waits.
	readingLeast = 50 * time.Millisecond
	// eventMost bounds an event, groupMost what it says of one group, and allMost what is made of all, in bytes.
	eventMost, groupMost, allMost = 8 << 20, 1 << 20, 64 << 20
	// groupsMost bounds the groups.
	groupsMost = 20000
	// headersMost bounds the beginning of an answer, and refusalMost one that is none, in bytes.
	headersMost, refusalMost = 16 << 10, 64 << 10
	// retryLeast and retryMost are after what time weird is asked again: longer each time.
	retryLeast, retryMost = time.Second, 10 * time.Second
)
