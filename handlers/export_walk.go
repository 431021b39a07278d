package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"holdfast/journal"
	"holdfast/store"
)

// walk is one reading of a session for an export: the session as it was at the
// start, and its entries up to the head of that moment, read in pages. What is
// appended meanwhile is not in it.
type walk struct {
	st    *store.Store
	owner string
	one   store.Session
}

// exportPage is how many entries are read at once: short transactions, and at
// most 13 MiB in memory (JRN-6).
const exportPage = 200

func newWalk(ctx context.Context, st *store.Store, owner, id string) (*walk, error) {
	one, err := st.Session(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	w := &walk{st: st, owner: owner, one: one}
	state, err := maskedJSON(w.clean(), w.one.State)
	if err != nil {
		return nil, err
	}
	w.one.State = journal.State{}
	return w, json.Unmarshal(state, &w.one.State)
}

// events gives the entries after a seq, of the kinds alone if any are named,
// until fn wants no more.
func (w *walk) events(ctx context.Context, after int64, kinds []journal.Kind, fn func(*journal.Event) (more bool, err error)) error {
	for {
		page, err := w.st.EventsBetween(ctx, w.owner, w.one.ID, after, w.one.LastSeq, kinds, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			seq := page[i].Seq
			if page[i].Data, err = w.clean().Event(&page[i]); err != nil {
				return fmt.Errorf("clean event #%d: %w", seq, err)
			}
			if more, err := fn(&page[i]); err != nil || !more {
				return err
			}
			after = page[i].Seq
		}
		if len(page) < exportPage {
			return nil
		}
	}
}

// writeEvents writes all entries as one JSON array, an entry a line. Its bytes
// are what the journal's hash is taken over, in every format.
func (w *walk) writeEvents(ctx context.Context, to io.Writer, note func(*journal.Event)) error {
	buf := bufio.NewWriter(to)
	before := "["
	err := w.events(ctx, 0, nil, func(ev *journal.Event) (bool, error) {
		b, err := journal.Encode(newEventJSON(ev, ev.Data))
		if err != nil {
			return false, err
		}
		note(ev)
		_, _ = buf.WriteString(before) // its error stays, and Flush gives it
		before = ",\n"
		_, err = buf.Write(b)
		return true, err
	})
	if err != nil {
		return err
	}
	if before == "[" {
		_, _ = buf.WriteString(before)
	}
	_, _ = buf.WriteString("]")
	return buf.Flush()
}

// text gives a text of an event that may lie in a blob.
func (w *walk) text(ctx context.Context, t journal.Text) (string, error) {
	if t.Blob == "" {
		return t.S, nil
	}
	data, err := w.st.Blob(ctx, w.owner, w.one.ID, t.Blob)
	return w.clean().Bytes(string(data)), err
}

// clean is what hides the owner's secrets, of which one may become known at any time.
func (w *walk) clean() *journal.Cleaner { return w.st.Cleaner(w.owner) }

// folding says how things are made of the events that open and change them.
type folding[T any] struct {
	kinds []journal.Kind
	about func(journal.Body) (id string, opens bool) // "": of no such thing
	open  func(*journal.Event, journal.Body) T
	apply func(T, *journal.Event, journal.Body) error
	done  func(T) bool // nothing that follows changes it
}

// foldWindow bounds how many things are held at once.
const foldWindow = 200

// folded gives things in the order in which they were opened, as they were at
// the walk's head. It holds a window of them: it reads on until all of one are
// done, then begins anew after the last that it has given. An event that can't be
// read or can't follow is passed over here, so that a damaged journal can be
// exported: it stands among the entries, and verify names it.
func folded[T any](ctx context.Context, w *walk, f folding[T], emit func(T) error) error {
	past := map[string]bool{} // given, though not done: their later events were folded, too
	for after, more := int64(0), true; more; {
		win := window[T]{folding: f, past: past, things: map[string]T{}}
		if err := w.events(ctx, after, f.kinds, win.take); err != nil {
			return err
		}
		for _, id := range win.order {
			if err := emit(win.things[id]); err != nil {
				return err
			}
			if !f.done(win.things[id]) {
				past[id] = true
			}
		}
		after, more = win.last, win.full
	}
	return nil
}

// window is what folded holds.
type window[T any] struct {
	folding[T]
	past   map[string]bool
	things map[string]T
	order  []string
	open   int   // not done
	last   int64 // where the newest was opened
	full   bool  // another one belongs to the next window
}

func (w *window[T]) take(ev *journal.Event) (more bool, _ error) {
	body, err := ev.Decode()
	if err != nil {
		return true, nil //nolint:nilerr // verify names it
	}
	id, opens := w.about(body)
	switch thing, known := w.things[id]; {
	case known:
		was := w.done(thing)
		if err := w.apply(thing, ev, body); err == nil && w.done(thing) && !was {
			w.open--
		}
	case !opens || id == "" || w.past[id]:
	case len(w.order) == foldWindow:
		w.full = true
	default:
		thing = w.folding.open(ev, body)
		w.things[id], w.order, w.last = thing, append(w.order, id), ev.Seq
		if !w.done(thing) {
			w.open++
		}
	}
	return !w.full || w.open > 0, nil
}

// calls gives the session's calls in the order of proposal.
func (w *walk) calls(ctx context.Context, emit func(*journal.Call) error) error {
	return folded(ctx, w, folding[*journal.Call]{
		kinds: []journal.Kind{
			journal.KindCallProposed, journal.KindCallDescribed, journal.KindCallContradicted, journal.KindPermissionAsked, journal.KindCallDispatched, journal.KindCallAdopted, journal.KindCallSettled,
			journal.KindCallUnknown, journal.KindCallEvidence, journal.KindCallResolved,
		},
		about: func(body journal.Body) (string, bool) {
			switch b := body.(type) {
			case *journal.CallProposed:
				return b.CallID, true
			case *journal.PermissionAsked:
				return b.Tool.CallID, false
			}
			return journal.CallOf(body), false
		},
		open: func(ev *journal.Event, body journal.Body) *journal.Call {
			return journal.NewCall(ev, body.(*journal.CallProposed))
		},
		apply: func(c *journal.Call, ev *journal.Event, body journal.Body) error { return c.Apply(ev, body) },
		done:  func(c *journal.Call) bool { return settled(c) }, // late evidence may come to an unknown one
	}, func(c *journal.Call) error {
		if c.N > 0 && !settled(c) { // what has ended says it itself
			var err error
			if c.OutputBytes, c.DroppedBytes, err = w.st.OutputThrough(ctx, w.owner, c.ID, w.one.LastSeq); err != nil {
				return err
			}
		}
		return emit(c)
	})
}

// requests gives the session's requests in the order in which they were asked.
func (w *walk) requests(ctx context.Context, emit func(*journal.Request) error) error {
	return folded(ctx, w, folding[*journal.Request]{
		kinds: []journal.Kind{journal.KindPermissionAsked, journal.KindPermissionReplied, journal.KindPermissionCancelled},
		about: func(body journal.Body) (string, bool) {
			switch b := body.(type) {
			case *journal.PermissionAsked:
				return b.ID, true
			case *journal.PermissionReplied:
				return b.ID, false
			case *journal.PermissionCancelled:
				return b.ID, false
			}
			return "", false
		},
		open: func(ev *journal.Event, body journal.Body) *journal.Request {
			return journal.NewRequest(ev, body.(*journal.PermissionAsked))
		},
		apply: func(r *journal.Request, ev *journal.Event, body journal.Body) error { return r.Apply(ev, body) },
		done:  func(r *journal.Request) bool { return r.State != journal.RequestPending },
	}, emit)
}

// settled reports whether the outcome of a call is recorded.
func settled(c *journal.Call) bool { return !c.Open() && c.State != journal.CallIsUnknown }
