package handlers

import (
	"bytes"
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/views/components"
	"holdfast/views/pages"
)

// callLines is how many lines of a call's output its page shows at first.
const callLines = 200

// showCall: GET /calls/:id?lines=. It is where an uncertain call is reconciled by itself.
func (s *Server) showCall(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "call")
	if err != nil {
		return err
	}
	lines, err := queryInt(c, "lines", callLines)
	if err != nil {
		return err
	}
	ownerID := current(c).User.ID
	call, err := s.store.Call(c.UserContext(), ownerID, id)
	if err != nil {
		return err
	}
	one, err := s.store.Session(c.UserContext(), ownerID, call.SessionID)
	if err != nil {
		return err
	}
	p := pages.Call{Call: call, Payload: components.CallPayload(call)}
	if p.Frame, err = s.frame(c, "Call: "+components.QuotedName(p.Name()), "sessions", one.Now); err != nil {
		return err
	}
	p.S, p.Facts = sessionView(&one, p.Viewer), components.CallFacts(call, p.Viewer)
	if call.Unresolved() {
		card := components.NewUnknownCard(call, one.Now, newKey())
		card.Own, card.Others = true, one.State.Unknowns()-1
		p.Card, p.Prefix = &card, p.S.TitlePrefix()
	}
	text, total, err := s.outputEnd(c.UserContext(), ownerID, id)
	if err != nil {
		return err
	}
	p.Binary = !isText(text)
	p.Output = components.NewLongOutput("out-"+id, id, components.OutputLabel(p.Name()), string(text), total, int(min(max(lines, 1), components.MostLines)))
	p.Output.Dropped = call.DroppedBytes
	if p.Entries, err = s.lastEntries(c, call.SessionID); err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.CallPage(p))
}

// outputEnd reads the last bytes of a call's output that a page may show, from a
// line's beginning on, and how much there is in all.
func (s *Server) outputEnd(ctx context.Context, ownerID, id string) (end []byte, total int64, err error) {
	out, err := s.store.CallOutput(ctx, ownerID, id, 0, components.LongBytes)
	if err != nil || out.Next >= out.Total && int64(len(out.Data)) >= out.Total {
		return out.Data, out.Total, err
	}
	total = out.Total
	for offset := max(total-components.LongBytes, 0); offset < total; {
		if out, err = s.store.CallOutput(ctx, ownerID, id, offset, components.LongBytes-len(end)); err != nil {
			return nil, 0, err
		}
		if len(out.Data) == 0 {
			break
		}
		end, offset = append(end, out.Data...), out.Next
	}
	if i := bytes.IndexByte(end, '\n'); int64(len(end)) < total && i >= 0 && i+1 < len(end) { // else it is the end of one line
		end = end[i+1:]
	}
	for len(end) > 0 && !utf8.RuneStart(end[0]) {
		end = end[1:]
	}
	return end, total, nil
}
