package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/journal"
)

// Bounds of what is kept of committed events beside the journal: for each
// session that somebody follows, and for all of them.
const (
	tailEvents = 256
	tailSize   = 1 << 20
	tailsSize  = 64 << 20
)

// Entry is an event that was committed. Its readers share it, and change nothing of it.
type Entry struct {
	journal.Event

	once sync.Once
	form []byte
	err  error
}

// Form gives the event as its readers send it. The first of them makes it, for
// all: every caller has to give the same function.
func (e *Entry) Form(of func(*journal.Event) ([]byte, error)) ([]byte, error) {
	e.once.Do(func() { e.form, e.err = of(&e.Event) })
	return e.form, e.err
}

// size is what an entry counts: its data, once as it is and once in a form.
func (e *Entry) size() int64 { return 2*int64(len(e.Data)) + 512 }

// tail are the latest entries of one session without a gap, the oldest first. It
// never changes: who has loaded it needs no lock.
type tail struct {
	entries []*Entry
	bytes   int64
}

// with is the tail and the events after it, as far as the bounds allow. Events
// that don't follow its last one, because another server wrote between, or
// because nobody knew what became of a commit, begin it anew.
func (t *tail) with(events []journal.Event) *tail {
	next := &tail{}
	if t != nil && t.entries[len(t.entries)-1].Seq+1 == events[0].Seq {
		next.entries, next.bytes = append(make([]*Entry, 0, len(t.entries)+len(events)), t.entries...), t.bytes
	}
	for i := range events {
		e := &Entry{Event: events[i]}
		next.entries, next.bytes = append(next.entries, e), next.bytes+e.size()
	}
	first := 0
	for len(next.entries)-first > tailEvents || next.bytes > tailSize {
		next.bytes -= next.entries[first].size()
		next.entries[first] = nil // else the slice would keep it
		first++
	}
	next.entries = next.entries[first:]
	return next
}

// after copies at most limit entries from the one after a seq on. None: the tail
// doesn't hold that one.
func (t *tail) after(seq int64, limit int) []*Entry {
	if t == nil || seq+1 < t.entries[0].Seq || seq+1 > t.entries[len(t.entries)-1].Seq {
		return nil
	}
	rest := t.entries[seq+1-t.entries[0].Seq:]
	return append([]*Entry(nil), rest[:min(limit, len(rest))]...)
}

// topic is a session that somebody hears of.
type topic struct {
	subs  map[*sub]struct{}
	keeps int          // followers for whom the tail is kept
	heard atomic.Int64 // the greatest seq that a wake-up named
	tail  atomic.Pointer[tail]
}

// sub hears of one session.
type sub struct {
	c    chan struct{}
	lost atomic.Bool // wake-ups may have been lost since the journal was last read
}

func (h *hub) subscribe(session string) (*topic, *sub) {
	sb := &sub{c: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[session]
	if t == nil {
		t = &topic{subs: map[*sub]struct{}{}}
		h.topics[session] = t
	}
	t.subs[sb] = struct{}{}
	return t, sb
}

// unsubscribe forgets a sub; keeps: the tail was kept for it, too.
func (h *hub) unsubscribe(session string, t *topic, sb *sub, keeps bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := t.subs[sb]; !there {
		return
	}
	delete(t.subs, sb)
	if keeps {
		if t.keeps--; t.keeps == 0 {
			h.replace(t, nil)
		}
	}
	if len(t.subs) == 0 {
		delete(h.topics, session)
	}
}

// keep adds events to the tails of their sessions. They are committed: nothing
// else may come here.
func (h *hub) keep(events []journal.Event) {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].SessionID == events[0].SessionID && events[n].Seq == events[n-1].Seq+1 {
			n++
		}
		if t := h.topics[events[0].SessionID]; t != nil && t.keeps > 0 {
			h.replace(t, t.tail.Load().with(events[:n]))
			if h.kept > h.most { // all begin anew; their readers have the journal
				for _, t := range h.topics {
					h.replace(t, nil)
				}
			}
		}
		events = events[n:]
	}
}

func (h *hub) replace(t *topic, next *tail) {
	if was := t.tail.Swap(next); was != nil {
		h.kept -= was.bytes
	}
	if next != nil {
		h.kept += next.bytes
	}
}

// Follower reads one session of its owner's while it grows: by After from the
// journal, and by Tail what was committed in this process since, without a read.
// One goroutine uses it, and closes it.
type Follower struct {
	s              *Store
	owner, session string
	topic          *topic
	sub            *sub
	allowed        bool // the journal has said that the session is the owner's
	keeps          bool // the tail is kept for this one, too
}

// Follow begins to hear of a session. It doesn't look whose it is: that does the
// first After, without which Tail gives nothing (OWN-1).
func (s *Store) Follow(owner, session string) *Follower {
	f := &Follower{s: s, owner: owner, session: session}
	f.topic, f.sub = s.hub.subscribe(session)
	return f
}

// C is signalled after commits in the session, like the channel of Subscribe.
func (f *Follower) C() <-chan struct{} { return f.sub.c }

// Close ends the following. The last one to leave a session takes its tail along.
func (f *Follower) Close() { f.s.hub.unsubscribe(f.session, f.topic, f.sub, f.keeps) }

// After is EventsAfter of the session, for its owner.
func (f *Follower) After(ctx context.Context, after int64, limit int) ([]*Entry, int64, error) {
	f.sub.lost.Store(false) // before the read: what is lost meanwhile is said again
	began := time.Now()
	p, err := f.s.EventsAfter(ctx, f.owner, f.session, after, limit)
	if err != nil {
		f.sub.lost.Store(true) // nothing is known
		return nil, 0, err
	}
	f.found(p.Head, &reading{began, p.Now}, true)
	out := make([]*Entry, len(p.Events))
	for i := range p.Events {
		out[i] = &Entry{Event: p.Events[i]}
	}
	return out, p.Head, nil
}

// Page is SessionAfter of the session, for its owner.
func (f *Follower) Page(ctx context.Context, after int64, limit int) (SessionPage, error) {
	f.sub.lost.Store(false)
	began := time.Now()
	p, err := f.s.SessionAfter(ctx, f.owner, f.session, after, limit)
	if err != nil {
		f.sub.lost.Store(true)
		return p, err
	}
	f.found(p.Session.LastSeq, &reading{began, p.Session.Now}, f.keeps)
	return p, nil
}

// found notes what a read of the journal has said. keep: who reads so will ask for the tail.
func (f *Follower) found(head int64, r *reading, keep bool) {
	h := f.s.hub
	h.read.Store(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	f.allowed = true
	f.topic.heard.Store(max(f.topic.heard.Load(), head))
	if keep && !f.keeps {
		f.keeps = true
		f.topic.keeps++
	}
}

// Tail gives the entries after a seq, in order and without a gap, at most limit,
// if this process has committed them lately and still has them; and the greatest
// seq that it heard of. With ok and no entry it has heard of none after that seq.
// Not ok: only the journal can say, by After. Since what other servers commit
// isn't here, and wake-ups may be lost, who follows reads the journal now and
// then all the same.
func (f *Follower) Tail(after int64, limit int) (list []*Entry, head int64, ok bool) {
	if !f.allowed || f.sub.lost.Load() {
		return nil, 0, false
	}
	head = f.topic.heard.Load()
	if head <= after {
		return nil, after, true
	}
	list = f.topic.tail.Load().after(after, limit)
	return list, head, len(list) > 0
}
