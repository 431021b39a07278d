package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/vault"
)

// Bounds of what a connection may take.
const (
	bodyLimit   = 1 << 20  // a prompt of 256 KiB fits in any encoding of it that isn't spiteful
	headerLimit = 16 << 10 // fasthttp's 4 KiB would answer 431 to a browser with many cookies
	readTime    = 30 * time.Second
	idleTime    = 75 * time.Second
	requestTime = 20 * time.Second // a request that isn't a stream
	shutdownMax = 5 * time.Second
)

// Options are what the server is made of.
type Options struct {
	Store     *store.Store
	Logger    *slog.Logger
	PublicURL string // as browsers see it; "": Origin is compared with Host
	// Prepare checks a folder for a new session and marks it (WSP-1). Its error is a *journal.Error.
	Prepare   func(ctx context.Context, path string) (realPath, markerID string, err error)
	Vault     *vault.Keeper // of the credentials; nil: none can be stored
	Rate      float64       // submissions a second for an owner (ADM-10); 0: 50
	Burst     int           // 0: 200
	Version   string
	Notices   []string      // what degrades on this platform
	StreamMax time.Duration // a stream ends after this, and its reader resumes; 0: 10 min
	Heartbeat time.Duration // 0: 10 s

	WorkerID string                // of the runner beside it; "": there is none
	Agents   func() []AgentProgram // those of this server, each as it is just now; nil: the runbook
	// LookAt starts an agent for an owner, without asking a model, and ends it. It heeds the end of ctx.
	LookAt func(ctx context.Context, agent, ownerID string) ([]store.Finding, error)
}

// Server answers HTTP. New makes it, Serve runs it until Shutdown.
type Server struct {
	app      *fiber.App
	store    *store.Store
	log      *slog.Logger
	sessions *scs.SessionManager
	opts     Options
	origin   string        // of the public URL, or ""
	limits   *limiter      // submissions, by owner
	signIns  *limiter      // by address and client
	hashing  chan struct{} // bounds the memory of password checks
	looks    *agentLooks

	// renderError draws a page for an error; nil: plain text. The page routes set it.
	renderError func(c *fiber.Ctx, status int, err *journal.Error) error

	flushTime time.Duration // how long a reader of a stream may take nothing
	pollTime  time.Duration // the safety net under lost wake-ups
	streams   atomic.Int64  // open ones
	pages     atomic.Int64  // that streams have read
	polls     atomic.Int64  // long polls that wait
	notReady  atomic.Bool
	stop      chan struct{} // closed: streams end
	stopOnce  sync.Once

	mu       sync.Mutex
	ln       net.Listener
	open     map[*stream]struct{}
	endWatch context.CancelFunc // of their watch
	watching sync.WaitGroup
	closed   bool
}

// New makes a server. It listens to nothing yet.
func New(o Options) *Server {
	o.Rate = cmp.Or(o.Rate, 50)
	o.Burst = cmp.Or(o.Burst, 200)
	o.StreamMax = cmp.Or(o.StreamMax, 10*time.Minute)
	o.Heartbeat = cmp.Or(o.Heartbeat, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		store: o.Store, log: o.Logger, opts: o, origin: originOf(o.PublicURL), limits: newLimiter(o.Rate, o.Burst), signIns: newLimiter(signInRate, signInBurst),
		hashing: make(chan struct{}, 2), stop: make(chan struct{}), open: map[*stream]struct{}{}, flushTime: 15 * time.Second, pollTime: 2 * time.Second,
	}
	s.looks = newAgentLooks(o.LookAt, o.Logger)
	s.sessions = newSessions(o.Store.WebSessions(), s.origin)
	s.app = fiber.New(fiber.Config{
		AppName: "Holdfast", DisableStartupMessage: true, ErrorHandler: s.fail,
		Immutable:     true, // else strings of one request change under it into the next one's
		CaseSensitive: true, BodyLimit: bodyLimit, ReadBufferSize: headerLimit,
		ReduceMemoryUsage: true, // else each open stream, and each idle connection, keeps its buffer for headers
		// Streams move the write deadline on themselves.
		ReadTimeout: readTime, WriteTimeout: readTime, IdleTimeout: idleTime,
	})
	s.routeAnyMethod()
	s.app.Use(s.secure)
	for _, r := range s.routes() {
		s.app.Add(r.method, r.path, s.guard(r))
		if r.method == fiber.MethodGet {
			s.app.Add(fiber.MethodHead, r.path, s.guard(r))
		}
	}
	return s
}

// routeAnyMethod lets the router answer a method that it doesn't know like one
// that no route takes: 404, or 405 with what the address does take. By itself it
// answers 400 in plain text, without a request id and our headers.
func (s *Server) routeAnyMethod() {
	route := s.app.Server().Handler
	s.app.Server().Handler = func(c *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(c.Method())) {
			c.Request.Header.SetMethod(fiber.MethodTrace)
		}
		route(c)
	}
}

// originOf gives scheme and host of a URL as browsers write an Origin, which
// leaves out the scheme's own port; or "".
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	own := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, own)
}

// App is the router, for tests.
func (s *Server) App() *fiber.App { return s.app }

// Serve answers what comes to the listener until Shutdown; it then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ln.Close()
	}
	s.ln = ln
	s.mu.Unlock()
	if err := s.app.Listener(lingering{ln}); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// NotReady makes /readyz answer 503 from now on: no new work should come here.
func (s *Server) NotReady() { s.notReady.Store(true) }

// Shutdown ends all streams, telling their readers that observation ends, not
// work; then it waits for the other requests, at most 5 s. It may be called at
// any time, and again.
func (s *Server) Shutdown(ctx context.Context) error {
	s.NotReady()
	// Streams first: fiber would wait for them until its time is up.
	s.stopOnce.Do(func() { close(s.stop) })
	s.mu.Lock()
	s.closed = true
	if s.endWatch != nil {
		s.endWatch()
	}
	ln := s.ln
	s.mu.Unlock()
	err := s.endFlushes()
	s.looks.end() // an agent has a few seconds to leave
	ctx, cancel := context.WithTimeout(ctx, shutdownMax)
	defer cancel()
	err = errors.Join(err, s.app.ShutdownWithContext(ctx))
	if ln != nil { // in case that fiber hadn't begun with it
		if cerr := ln.Close(); cerr != nil && !errors.Is(cerr, net.ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}
	s.watching.Wait()
	if err != nil {
		return fmt.Errorf("stop the web server: %w", err)
	}
	return nil
}
