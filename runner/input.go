package runner

import (
	"context"
	"errors"
	"log/slog"

	"holdfast/journal"
	"holdfast/store"
)

// maxHeldInputs bounds the long inputs that a turn holds, in bytes: what an agent speaks
// of is mostly its last call.
const maxHeldInputs = 4 << 20

// wholeInputs are inputs that lie in a blob, as they were read last, by what refers to
// them.
type wholeInputs struct {
	texts map[string]journal.Call
	bytes int
}

// WholeCall gives a call of this turn and those that it continues with its input whole,
// and what its agent said of it later, or nil. The other ways to a call give, for a long
// one, what refers to it: whoever judges or compares what a call is reads it here. Of one
// whose blob is missing that stays, which journal.ReadInput doesn't take: nobody knows what
// that call is, and the others of its turn go on.
func (t *Turn) WholeCall(ctx context.Context, id string) (*journal.Call, error) {
	c := t.CallByID(id)
	if c == nil {
		return nil, nil //nolint:nilnil // as CallByID
	}
	if _, elsewhere := c.Elsewhere(); !elsewhere {
		return c, nil
	}
	key := string(c.Input) + "\x00" + string(c.Later)
	if held, ok := t.whole.texts[key]; ok {
		c.Input, c.Later = held.Input, held.Later
		return c, nil
	}
	switch err := t.r.store.WholeInput(context.WithoutCancel(ctx), c); {
	case errors.Is(err, store.ErrNoInput):
		t.r.log.Error("read the input of a call", slog.String("session", t.run.session), slog.String("call", id), slog.Any("error", err))
	case err != nil:
		return nil, err
	}
	t.whole.hold(key, c)
	return c, nil
}

func (w *wholeInputs) hold(key string, c *journal.Call) {
	size := len(key) + len(c.Input) + len(c.Later)
	if w.bytes+size > maxHeldInputs {
		*w = wholeInputs{}
	}
	if size > maxHeldInputs {
		return
	}
	if w.texts == nil {
		w.texts = map[string]journal.Call{}
	}
	w.texts[key] = journal.Call{Input: c.Input, Later: c.Later}
	w.bytes += size
}
