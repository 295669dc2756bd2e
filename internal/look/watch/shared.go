package watch

import (
	"reflect"

	"github.com/weir-io/weir/internal/place"
)

// shared are the last few answers to what is expected of limits. Of thousands of groups most have the same,
// which is kept once.
type shared []*place.Expected

// sharedMost bounds them.
const sharedMost = 16

// share has answers be those that are kept, where they are the same.
func (s *shared) share(all []*place.Expected) {
	for i, e := range all {
		all[i] = s.one(e)
	}
}

func (s *shared) one(e *place.Expected) *place.Expected {
	for _, kept := range *s {
		if reflect.DeepEqual(kept, e) {
			return kept
		}
	}
	if len(*s) >= sharedMost {
		*s = append((*s)[:0], (*s)[1:]...)
	}
	*s = append(*s, e)
	return e
}
