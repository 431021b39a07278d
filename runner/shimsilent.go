package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/store"
)

// answerWithin is how long a shim may take to answer, as a stop elsewhere has it.
const answerWithin = 10 * time.Second

// errNoAnswer says that a shim hasn't answered in time.
var errNoAnswer = errors.New("its shim doesn't answer")

// attach is Shims.Attach for as long as a shim may take to answer. late: it has taken
// longer, since somebody has stopped it, say.
func (r *Runner) attach(ctx context.Context, id shim.ID) (child *shim.Child, late bool, err error) {
	within, cancel := context.WithTimeoutCause(ctx, r.o.AnswerWithin, errNoAnswer)
	defer cancel()
	child, err = r.o.Shims.Attach(within, id)
	return child, err != nil && within.Err() != nil && ctx.Err() == nil, err
}

// attach joins a command that may have outlived its server. While its shim doesn't answer
// it is asked again, and nothing is concluded: the session says so meanwhile (REC-10).
func (t *Turn) attach(ctx context.Context, c *journal.Call) (*shim.Child, error) {
	for {
		child, late, err := t.r.attach(t.run.ctx, shim.ID{CallID: c.ID, N: c.N}) //nolint:contextcheck // the wait for it ends with the run
		if late {
			if err := t.saysItIsSilent(ctx, c); err != nil {
				return nil, err
			}
			continue
		}
		if err == nil || errors.Is(err, shim.ErrLost) { // gone is an answer, too
			if aerr := t.saysItAnswers(ctx); aerr != nil {
				if child != nil {
					t.r.closeChild(child)
				}
				return nil, aerr
			}
		}
		return child, err
	}
}

func (t *Turn) silent() bool {
	b := t.fold.State.Blocked
	return b != nil && b.Cause == journal.BlockShim
}

// saysItIsSilent journals, once, that the shim of a command doesn't answer.
func (t *Turn) saysItIsSilent(ctx context.Context, c *journal.Call) error {
	if err := t.refresh(ctx); err != nil || t.silent() {
		return err
	}
	t.r.log.Warn("the shim of a command doesn't answer", slog.String("session", t.run.session), slog.String("call", c.ID))
	where := "on the host of its server"
	if p := c.Process; p != nil && p.Host != "" {
		where = fmt.Sprintf("on %s as pid %d", p.Host, p.PID)
	}
	return t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Server(), &journal.SessionBlocked{
		Cause:       journal.BlockShim,
		Detail:      fmt.Sprintf("Since %s the process that keeps a command doesn't answer: the command was started %s at %s, and may still run, or have ended. Nothing is concluded of it, nothing is repeated, and nothing else is begun here; what it puts out is kept. The server goes on asking. Look on that host whether its process \"holdfast shim\" was stopped, and let it go on (kill -CONT). Or end it: then the outcome is unknown, and you are asked.", journal.TimeInWords(time.Now().UnixMilli()), where, journal.TimeInWords(c.DispatchedAt)),
		UnblockedBy: "an answer of the process that keeps the command, or its end",
	})}})
}

// saysItAnswers journals that it does again.
func (t *Turn) saysItAnswers(ctx context.Context) error {
	if !t.silent() {
		return nil
	}
	return t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Server(), &journal.SessionUnblocked{Cause: journal.BlockShim})}})
}
