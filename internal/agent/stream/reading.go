package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/look/watch"
)

// A Reading is what all groups did, with what is known beside it. The maps are by the groups' paths.
type Reading struct {
	Snapshot *watch.Snapshot
	Plans    map[string]string // their names
	Told     map[string]held.Told
	Source   api.TopSource
}

// An event is api.TopEvent, whose groups are read one by one.
type event struct {
	api.TopEvent
	Groups []json.RawMessage `json:"groups"`
}

// A known group is one that weird has told of.
type known struct {
	group *watch.Group
	plan  string
	told  *held.Told // nil: nothing
	size  int        // in bytes
}

// A state is what weird has told so far.
type state struct {
	groups map[string]known
	order  []string // their paths, sorted; nil: it has to be made again
	bytes  int
	others bool // plans or measurements are others than in the last reading
	view   Reading
}

// take takes an event. done says that a reading is whole.
func (s *state) take(data []byte) (done bool, err error) {
	if err := bounded(data); err != nil {
		return false, err
	}
	var e event
	if err := rawtext.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("what weird says cannot be read: %w", err)
	}
	if want := api.SchemaOf("top.event").Schema; e.Schema.Schema != want {
		return false, &versionError{e.Schema.Schema}
	}
	if e.Whole || s.groups == nil {
		*s = state{groups: map[string]known{}, others: true}
	}
	for _, path := range e.Gone {
		s.drop(path)
	}
	for _, text := range e.Groups {
		if err := s.group(text); err != nil {
			return false, err
		}
	}
	if e.More {
		return false, nil
	}
	return true, s.show(e.Top)
}

func (s *state) drop(path string) {
	if was, there := s.groups[path]; there {
		s.bytes -= was.size
		s.order, s.others = nil, true
		delete(s.groups, path)
	}
}

// group takes what weird says of one group.
func (s *state) group(text json.RawMessage) error {
	if len(text) > groupMost {
		return fmt.Errorf("weird says %d bytes of one group, and at most %d are read", len(text), groupMost)
	}
	var doc api.TopGroup
	if err := rawtext.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("what weird says of a group cannot be read: %w", err)
	}
	was, there := s.groups[doc.Cgroup]
	if !there {
		s.order = nil
	}
	now := known{group: doc.Group()}
	if doc.Plan != nil {
		now.plan = *doc.Plan
	}
	if h := doc.Held; h != nil {
		now.told = &held.Told{Verdict: h.Verdict(), Code: h.Code, Why: h.Why}
	}
	now.size = sizeOf(now, len(text))
	s.others = s.others || now.plan != was.plan || now.told != nil || was.told != nil
	s.groups[doc.Cgroup], s.bytes = now, s.bytes+now.size-was.size
	if len(s.groups) > groupsMost || s.bytes > allMost {
		return fmt.Errorf("weird tells of more than %d groups, or more than %d bytes of them, and no more are kept", groupsMost, allMost)
	}
	return nil
}

// show makes the view of a whole reading.
func (s *state) show(head api.Top) error {
	snapshot, err := head.Snapshot()
	if err != nil {
		return fmt.Errorf("what weird says cannot be read: %w", err)
	}
	if snapshot.Unreadable != nil {
		snapshot.Unreadable = errors.New(plain.Message(snapshot.Unreadable.Error()))
	}
	if s.order == nil {
		s.order = slices.Sorted(maps.Keys(s.groups))
	}
	snapshot.Groups = make([]*watch.Group, len(s.order))
	for i, path := range s.order {
		snapshot.Groups[i] = s.groups[path].group
	}
	if s.others {
		s.others = false
		s.view.Plans, s.view.Told = map[string]string{}, map[string]held.Told{}
		for path, k := range s.groups {
			if k.plan != "" {
				s.view.Plans[path] = k.plan
			}
			if k.told != nil {
				s.view.Told[path] = *k.told
			}
		}
	}
	s.view.Snapshot = snapshot
	s.view.Source = api.TopSource{From: api.FromWeird, Version: plain.Brief(head.Source.Version)}
	return nil
}

// A versionError says that weird is of another version.
type versionError struct{ schema string }

func (e *versionError) Error() string {
	if e.schema == "" {
		return "weird is of another version"
	}
	return fmt.Sprintf("weird is of another version (it speaks %.40q)", e.schema)
}
