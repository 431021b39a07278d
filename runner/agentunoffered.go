package runner

import (
	"context"
	"strings"

	"holdfast/journal"
)

// mostLastWords bounds what is kept of it, in bytes.
const mostLastWords = 64 << 10

const reasonUnoffered = "this server doesn't offer the agent any more"

// endUnoffered ends the process of an agent that isn't offered any more, and keeps what it
// had written that nobody read. The error is what the run ends with if the process may
// still run: then nothing is concluded.
func (t *Turn) endUnoffered(ctx context.Context) error {
	was := t.fold.State.Process
	if was == nil || was.Folder != t.r.o.StateFolderID {
		return nil
	}
	p, err := t.rejoinProcess(t.run.ctx, was, true) //nolint:contextcheck // the wait for its shim ends with the run
	if err != nil || p == nil {
		return err
	}
	defer p.Close()
	p.End(reasonUnoffered) //nolint:contextcheck // it has a bound of its own
	ending, cancel := context.WithTimeout(ctx, strayPatience)
	defer cancel()
	said, next, ended := p.lastWords(ending)
	if !ended {
		if _, gone := p.Kill(ctx); !gone {
			return errDetached
		}
	}
	p.unsent = nil // it hears nothing any more
	var drafts []journal.Draft
	for line := range strings.Lines(said) {
		raw := string(t.MaskedLine([]byte(strings.TrimRight(line, "\n")), nil))
		drafts = append(drafts, Said(&journal.AgentEvent{ProcessID: p.ID(), Raw: journal.T(raw)}))
	}
	return p.Commit(ctx, Commit{Drafts: drafts, ReadTo: next})
}

// lastWords reads what the process still writes until its end, as far as it is kept. next
// is of the spool, behind that. False: it hasn't ended while ctx lasts.
func (p *Process) lastWords(ctx context.Context) (said string, next int64, ended bool) {
	var out strings.Builder
	next, skip := p.At()
	for {
		select {
		case h, ok := <-p.Heard():
			if !ok || h.Ended {
				return out.String(), next, ok
			}
			for _, piece := range h.Pieces {
				if piece.Stream != "stdout" {
					continue
				}
				text := piece.Text[min(skip, int64(len(piece.Text))):]
				skip -= int64(len(piece.Text) - len(text))
				out.WriteString(text[:min(len(text), mostLastWords-out.Len())])
			}
			next = h.Next
		case <-ctx.Done():
			return out.String(), next, false
		}
	}
}
