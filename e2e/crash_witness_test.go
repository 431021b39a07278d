//go:build crashpoints

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"holdfast/e2e/rig"
)

// plot is a variant of the standard scenario.
type plot int

const (
	standard plot = iota
	longStep      // the first step waits at a gate, which nobody opens before the crash
	stopped       // likewise, and the person stops the turn meanwhile
)

// witness is a person who does the standard scenario over the API: a session, a
// mission of two steps of which one asks, a queued prompt and a steer, and
// whatever the session then needs: answers, resolutions, continues. They do all
// of it again, with the same keys, when the server was lost, and say what is
// true: whether something happened they see in the file that it would have written.
type witness struct {
	s    *server
	w    *world
	plot plot
	tag  string // before the names of their effects, where several work in one world
	gate *rig.Gate
	keys map[string]string

	id       string             // of the session, once it is known
	receipts map[string]receipt // by what was submitted
	j        journal            // as far as it was read
	unsure   []deed             // sent, and no answer came
	opened   map[string]bool    // calls for which the gate was opened

	mu    sync.Mutex
	heard []event       // by stream
	news  chan struct{} // closed and replaced when something is heard
}

// deed is a request that changes something. done are the statuses that mean
// that it is done, now or before.
type deed struct {
	path string
	body any
	key  string
	done []int
}

func newWitness(s *server, pl plot) *witness {
	p := &witness{s: s, w: s.w, plot: pl, keys: map[string]string{}, receipts: map[string]receipt{}, opened: map[string]bool{}, news: make(chan struct{})}
	if pl != standard {
		p.gate = s.w.gate("gate")
	}
	return p
}

// key gives the one key under which something is sent, however often.
func (p *witness) key(what string) string {
	if p.keys[what] == "" {
		p.keys[what] = newKey()
	}
	return p.keys[what]
}

// mission is what they hand over: a step that prints and acts, and one that asks first.
func (p *witness) mission() string {
	var first []string
	if p.gate != nil {
		first = append(first, p.gate.Read()+"; "+effect(p.tag+"held"))
	}
	return steps(append(first, "echo said; "+effect(p.tag+"one"), effect(p.tag+"asked"))...)
}

// rules let everything run but for one command, which asks.
func (p *witness) rules() []map[string]string {
	return append(slices.Clone(allowAll), map[string]string{"permission": "shell", "pattern": "echo " + p.tag + "asked*", "action": "ask"})
}

// work goes on from the top until all is done (true) or the server is lost.
// armed: the server is about to be killed.
func (p *witness) work(armed bool) bool {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.w.t.Context()), patience)
	defer cancel()
	err := p.submit(ctx)
	if err == nil {
		streaming, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); p.listen(streaming) }()
		err = p.follow(ctx, armed)
		if err == nil && !armed {
			p.hearAll(ctx)
		}
		stop()
		<-ended
	}
	if err != nil && ctx.Err() != nil {
		p.w.t.Fatalf("waited in vain for %s of %s (%v):\n%s", p.s.base, p.id, err, p.j.dump())
	}
	return err == nil
}

// carryOn is work with a server that stays, to its end. It gives the session's journal.
func (p *witness) carryOn() journal {
	p.w.t.Helper()
	if !p.work(false) {
		p.w.t.Fatalf("the server was lost again:\n%s", tail(p.s.err.String(), 4000))
	}
	if len(p.unsure) > 0 {
		p.w.t.Errorf("no answer ever came to %+v", p.unsure)
	}
	return p.j
}

// ask sends a request; an error means that no answer came.
func (p *witness) ask(ctx context.Context, method, path string, body any, headers ...string) (answer, error) {
	return p.s.do(ctx, method, path, body, headers...)
}

// do does something once: what got no answer is sent again before anything else.
func (p *witness) do(ctx context.Context, d deed) (answer, error) {
	p.w.t.Helper()
	var headers []string
	if d.key != "" {
		headers = []string{"Idempotency-Key", d.key}
	}
	a, err := p.ask(ctx, http.MethodPost, d.path, d.body, headers...)
	if err != nil {
		p.unsure = append(p.unsure, d)
		return a, err
	}
	if !slices.Contains(d.done, a.status) {
		p.w.t.Fatalf("%s answered %d, want one of %v: %s", a.what, a.status, d.done, tail(string(a.body), 2000))
	}
	return a, nil
}

// submit hands everything over, again if need be.
func (p *witness) submit(ctx context.Context) error {
	p.w.t.Helper()
	again := p.unsure
	p.unsure = nil
	for i, d := range again {
		if _, err := p.do(ctx, d); err != nil {
			p.unsure = append(p.unsure, again[i+1:]...)
			return err
		}
	}
	body := p.w.newSession("")
	body["rules"] = p.rules()
	a, err := p.ask(ctx, http.MethodPost, "/api/v1/sessions", body, "Idempotency-Key", p.key("session"))
	if err != nil {
		return err
	}
	one := decode[session](p.w.t, a.want(p.w.t, http.StatusCreated))
	if p.id == "" {
		p.w.remember(one.ID)
	} else if p.id != one.ID {
		p.w.t.Fatalf("I4: one key made the sessions %s and %s", p.id, one.ID)
	}
	p.id = one.ID
	for _, s := range []struct{ what, text, delivery string }{
		{"mission", p.mission(), "queue"},
		{"queued", steps(effect(p.tag + "queued")), "queue"},
		{"steer", steps(effect(p.tag + "steered")), "steer"},
	} {
		if err := p.prompt(ctx, s.what, s.text, s.delivery); err != nil {
			return err
		}
	}
	return nil
}

func (p *witness) prompt(ctx context.Context, what, text, delivery string) error {
	p.w.t.Helper()
	a, err := p.ask(ctx, http.MethodPost, "/api/v1/sessions/"+p.id+"/prompts", map[string]string{"text": text, "delivery": delivery}, "Idempotency-Key", p.key(what))
	if err != nil {
		return err
	}
	r := p.w.acknowledged(decode[receipt](p.w.t, a.want(p.w.t, http.StatusAccepted)))
	if first, ok := p.receipts[what]; ok && (first.ID != r.ID || first.AdmittedSeq != r.AdmittedSeq || !r.Replayed) {
		p.w.t.Errorf("I4: the receipt of %s is %+v, was %+v", what, r, first)
	}
	p.receipts[what] = r
	return nil
}

// follow gives the session what it needs until it is finished and nobody holds it.
func (p *witness) follow(ctx context.Context, armed bool) error {
	p.w.t.Helper()
	for {
		if err := p.read(ctx, "0s"); err != nil {
			return err
		}
		a, err := p.ask(ctx, http.MethodGet, "/api/v1/sessions/"+p.id, nil)
		if err != nil {
			return err
		}
		s := decode[session](p.w.t, a.want(p.w.t, http.StatusOK))
		if s.State == "ready" && s.Execution == nil && s.PendingPrompts == 0 && p.j.last() == s.LastSeq {
			return nil
		}
		acted, err := p.react(ctx, s, armed)
		if err != nil {
			return err
		}
		if !acted {
			if err := p.read(ctx, "200ms"); err != nil {
				return err
			}
		}
	}
}

// read takes in the events that came; with wait it waits for one.
func (p *witness) read(ctx context.Context, wait string) error {
	for {
		a, err := p.ask(ctx, http.MethodGet, fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=1000&wait=%s", p.id, p.j.last(), wait), nil)
		if err != nil {
			return err
		}
		got := decode[page](p.w.t, a.want(p.w.t, http.StatusOK))
		p.j = append(p.j, got.Events...)
		if !got.HasMore {
			return nil
		}
	}
}

// react does the next thing that the session needs of a person.
func (p *witness) react(ctx context.Context, s session, armed bool) (acted bool, err error) {
	p.w.t.Helper()
	switch s.State {
	case "waiting":
		return p.decideAll(ctx)
	case "uncertain":
		return p.resolveAll(ctx)
	case "stopped", "blocked":
		_, err := p.do(ctx, deed{path: "/api/v1/sessions/" + p.id + "/continuation", done: []int{http.StatusAccepted, http.StatusConflict}})
		return true, err
	case "stopping": // whoever waits at the gate is being ended
		return false, nil
	case "failed", "limit_reached", "closed":
		p.w.t.Fatalf("the session is %s:\n%s", s.State, p.j.dump())
	}
	return p.atTheGate(ctx, armed)
}

func (p *witness) decideAll(ctx context.Context) (bool, error) {
	p.w.t.Helper()
	a, err := p.ask(ctx, http.MethodGet, "/api/v1/permissions?state=pending&session="+p.id, nil)
	if err != nil {
		return false, err
	}
	pending := decode[items[request]](p.w.t, a.want(p.w.t, http.StatusOK)).Items
	for _, r := range pending {
		_, err := p.do(ctx, deed{
			path: "/api/v1/permissions/" + r.ID + "/decision", key: p.key(r.ID),
			body: map[string]string{"reply": "once", "digest": r.Digest}, done: []int{http.StatusOK},
		})
		if err != nil {
			return false, err
		}
	}
	return len(pending) > 0, nil
}

// acting is a call with the command that it runs.
type acting struct {
	call
	Input struct {
		Command string `json:"command"`
	} `json:"input"`
}

var acts = regexp.MustCompile(`echo (\w+) >> effects`)

// name of the effect that the call has.
func (c acting) name() string {
	if m := acts.FindStringSubmatch(c.Input.Command); m != nil {
		return m[1]
	}
	return ""
}

func (p *witness) calls(ctx context.Context) ([]acting, error) {
	a, err := p.ask(ctx, http.MethodGet, "/api/v1/sessions/"+p.id+"/calls", nil)
	if err != nil {
		return nil, err
	}
	return decode[items[acting]](p.w.t, a.want(p.w.t, http.StatusOK)).Items, nil
}

// resolveAll says of each unknown call what the file says.
func (p *witness) resolveAll(ctx context.Context) (acted bool, err error) {
	p.w.t.Helper()
	calls, err := p.calls(ctx)
	if err != nil {
		return false, err
	}
	// Whatever ran was ended before it became unknown: what the file says now is final.
	seen := p.w.effects()
	for _, c := range calls {
		if c.State != "unknown" || c.Resolution != nil {
			continue
		}
		outcome := "did_not_happen"
		if seen[c.name()] > 0 {
			outcome = "happened"
		}
		_, err := p.do(ctx, deed{
			path: "/api/v1/calls/" + c.ID + "/resolution", done: []int{http.StatusOK, http.StatusConflict},
			body: map[string]string{"outcome": outcome, "evidence": "looked at the file", "then": "continue"},
		})
		if err != nil {
			return false, err
		}
		acted = true
	}
	return acted, nil
}

// atTheGate stops the turn whose step waits there, if that is the plot, once;
// else it opens the gate, unless the server is to be killed meanwhile.
func (p *witness) atTheGate(ctx context.Context, armed bool) (bool, error) {
	if p.gate == nil {
		return false, nil
	}
	calls, err := p.calls(ctx)
	if err != nil {
		return false, err
	}
	for _, c := range calls {
		if c.State != "dispatched" || c.name() != p.tag+"held" || p.opened[c.ID] {
			continue
		}
		if p.plot == stopped && p.j.count("interrupt.requested") == 0 {
			_, err := p.do(ctx, deed{path: "/api/v1/sessions/" + p.id + "/interruption", done: []int{http.StatusAccepted, http.StatusConflict}})
			return true, err
		}
		if !armed {
			p.opened[c.ID] = true
			p.gate.Open()
			return true, nil
		}
	}
	return false, nil
}

// listen follows the session's stream from what was heard on, until the context
// or the server ends. I8: what one connection sends is contiguous.
func (p *witness) listen(ctx context.Context) {
	p.mu.Lock()
	from := int64(len(p.heard))
	p.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.s.base+"/api/v1/sessions/"+p.id+"/events", nil)
	if err != nil {
		p.w.t.Errorf("stream: %v", err)
		return
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + p.w.token, "Accept": "text/event-stream", "Last-Event-ID": strconv.FormatInt(from, 10)} {
		req.Header.Set(name, value)
	}
	res, err := p.s.http.Do(req)
	if err != nil {
		return // lost
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for id := ""; lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); {
		case name == "id":
			id = value
		case name == "data" && id != "":
			p.hear(id, value)
			id = ""
		}
	}
}

// hear takes one message of a stream.
func (p *witness) hear(id, data string) {
	var e event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return // cut off by the server's death
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := int64(len(p.heard) + 1); e.Seq != want || id != strconv.FormatInt(want, 10) {
		p.w.t.Errorf("I8: the stream sends event %d as id %s where %d was next", e.Seq, id, want)
		return
	}
	p.heard = append(p.heard, e)
	close(p.news)
	p.news = make(chan struct{})
}

// hearAll waits until the stream has sent all that was read otherwise, and
// compares the two.
func (p *witness) hearAll(ctx context.Context) {
	p.w.t.Helper()
	for {
		p.mu.Lock()
		heard, news := p.heard, p.news
		p.mu.Unlock()
		if len(heard) >= len(p.j) {
			for i := range p.j {
				if heard[i].ID != p.j[i].ID || string(heard[i].Data) != string(p.j[i].Data) {
					p.w.t.Errorf("I8: the stream sent %s as event %d, the journal has %s", heard[i].ID, i+1, p.j[i].ID)
				}
			}
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			p.w.t.Errorf("I8: the stream ends at event %d of %d", len(heard), len(p.j))
			return
		}
	}
}

// checkEffects holds the file of effects against the calls (I5): what happened is
// what succeeded or was seen by the person, once each; nothing is left out. It
// gives the counts as text.
func (p *witness) checkEffects() string {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.w.t.Context()), patience)
	defer cancel()
	calls, err := p.calls(ctx)
	if err != nil {
		p.w.t.Fatalf("list the calls: %v", err)
	}
	want := map[string]int{}
	for _, name := range []string{"one", "asked", "queued", "steered"} {
		want[p.tag+name] = 0
	}
	for _, c := range calls {
		if c.State == "succeeded" || c.State == "unknown" && c.Resolution != nil && c.Resolution.Outcome == "happened" {
			want[c.name()]++
		}
	}
	got := p.w.effects()
	for name, n := range want {
		if n != 1 {
			p.w.t.Errorf("the step %s was brought to its end %d times\n%s", name, n, p.j.dump())
		}
		if got[name] != n {
			p.w.t.Errorf("I5: the effect %s happened %d times, and the journal tells of %d\n%s", name, got[name], n, p.j.dump())
		}
	}
	if got[p.tag+"held"] > want[p.tag+"held"] {
		p.w.t.Errorf("I5: a step that was stopped has acted all the same\n%s", p.j.dump())
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		text = append(text, fmt.Sprintf("%s %d", name, got[name]))
	}
	return strings.Join(text, " ")
}
