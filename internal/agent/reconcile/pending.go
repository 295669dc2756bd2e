package reconcile

import (
	"context"
	"time"
)

const (
	// namesMost bounds the names that wait for a look, and wroteMost the groups whose rules were written. With
	// more, everything is looked at.
	namesMost = 256
	wroteMost = 16384
	// awaitMost bounds how long the first look waits for events. It then finds all that they would tell of what was
	// there before, and need not be done again.
	awaitMost = time.Second
	// gatherTime is how long after a look the next one waits, to have more to look at, where nothing is in a hurry.
	gatherTime = 500 * time.Millisecond
)

// Changed says that something has changed: a target of a kind, by the source's name for it; "" for
// all of a kind. Without a kind everything is looked at. It never waits.
func (l *Loop) Changed(kind, name string) {
	for _, s := range l.sources {
		if kind == "" || kind == s.kind {
			l.tell(s, name, true)
		}
	}
}

// Soon is Changed where no limit waits for the look: it is in force already, or its target has ended. A look is as much work
// for one target as for ten, so on a busy host several are looked at together.
func (l *Loop) Soon(kind, name string) {
	if s := l.sources[kind]; s != nil {
		l.tell(s, name, false)
	}
}

// Written is Changed where all that has happened is that somebody has written the rules of a group. Where they are those
// that are to be in force there, no target is looked at: weir itself has written them, or its pacer. Of a group without a
// plan's limits none can be lost, so it is in no hurry.
func (l *Loop) Written(kind, name, group string) {
	s := l.sources[kind]
	if s == nil || name == "" {
		l.Changed(kind, name)
		return
	}
	hurry := l.Core.Limits(group)
	l.mu.Lock()
	s.tell(hurry)
	if len(s.wrote) >= wroteMost {
		s.all = true
	} else {
		s.wrote[group] = name
	}
	l.mu.Unlock()
	s.awake()
}

// Lost says that somebody may have written the rules of any group without an event. The rules of all groups whose limits are
// in force are compared, and their targets only where these are not as they are to be.
func (l *Loop) Lost() {
	for _, g := range l.Core.limited() {
		l.Written(g.kind, g.name, g.group)
	}
}

func (l *Loop) tell(s *source, name string, hurry bool) {
	l.mu.Lock()
	s.tell(hurry)
	if name == "" || len(s.names) >= namesMost {
		s.all = true
	} else {
		s.names[name] = true
	}
	l.mu.Unlock()
	s.awake()
}

// tell notes that something is to be looked at. The Loop is locked.
func (s *source) tell(hurry bool) {
	s.told, s.hurry, s.soon = true, s.hurry || hurry, s.soon || !hurry
}

func (s *source) awake() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

// waits reports whether something is to be looked at.
func (l *Loop) waits(s *source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.told
}

// gathers is until when more is gathered before a look; zero: nothing is.
func (l *Loop) gathers(s *source) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.soon && !s.hurry {
		until = s.looked.Add(gatherTime)
	}
	return until
}

// awaitEvents waits until a source's events come, or cannot be had.
func (l *Loop) awaitEvents(ctx context.Context, s *source) {
	late := time.NewTimer(awaitMost)
	defer late.Stop()
	for _, begun := range []<-chan struct{}{l.Begun, s.begun} {
		if begun == nil {
			continue
		}
		select {
		case <-begun:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pending takes what is to be looked at; nil: everything. compare says that everything is to be compared now. told says that
// events asked for it. is is false where nothing is: all that they told of are rules as they are to be.
func (l *Loop) pending(ctx context.Context, s *source, compare bool) (names []string, told, is bool) {
	l.mu.Lock()
	all, wrote := s.all || compare, s.wrote
	told = s.told
	for name := range s.names {
		names = append(names, name)
	}
	clear(s.names)
	s.all, s.told, s.hurry, s.soon, s.wrote = false, false, false, false, map[string]string{}
	l.mu.Unlock()
	if all {
		return nil, told, true
	}
	due, whole := l.Core.due(s.kind, time.Now()) // what is told of, however often, does not put them off
	if len(due) > 0 && (whole || !s.Alone()) {
		return nil, told, true
	}
	names = append(names, due...)
	for group, name := range wrote {
		if !l.has(ctx, s, group) {
			names = append(names, name)
		}
	}
	if len(names) > namesMost {
		return nil, true, true
	}
	return names, true, len(names) > 0
}

// has reports whether the rules of a group are those that are to be in force there.
func (l *Loop) has(ctx context.Context, s *source, group string) bool {
	if !l.Core.Limits(group) {
		return false
	}
	rules, err := s.Rules(ctx, group)
	return err == nil && l.Core.Has(group, rules)
}
