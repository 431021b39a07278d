package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"holdfast/runner/tool"
)

// Child is a server's end of a shim: one that it prepared, or attached to. Its
// methods may be called from several goroutines at once.
type Child struct {
	r       *Root
	id      ID
	process tool.Process
	base    context.Context // of End, which asks in any case

	mu    sync.Mutex
	went  bool
	line  *net.UnixConn // of the birth; nil if it was attached to
	lines *bufio.Reader
	shim  *os.Process
	conn  net.Conn // counts as attached; nil if it was prepared, or had ended
	mute  *int64   // see Muted
}

// ID names the child.
func (c *Child) ID() ID { return c.id }

// Process are the facts to journal with the dispatch (COO-7).
func (c *Child) Process() tool.Process { return c.process }

// Close detaches; the command goes on, and one whose gate wasn't opened never begins.
// What waits in other methods isn't woken.
func (c *Child) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detach()
	return nil
}

// Attach gives the child of an earlier Prepare, of whatever process. One that has
// ended meanwhile and left its record can be attached to as well; ErrLost: it isn't
// running and left none. A shim that doesn't answer is waited for until ctx ends.
func (r *Root) Attach(ctx context.Context, id ID) (*Child, error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	for wait := (backoff{}); ; {
		conn, got, err := r.ask(ctx, id, request{Op: opAttach}, nil)
		if err == nil && got.Process != nil {
			return &Child{r: r, id: id, base: context.WithoutCancel(ctx), process: *got.Process, conn: conn, mute: got.Mute}, nil
		}
		if conn != nil {
			_ = conn.Close()
		}
		found, err := r.Find(id)
		switch {
		case err != nil:
			return nil, err
		case found.Exit != nil:
			return &Child{r: r, id: id, base: context.WithoutCancel(ctx), process: found.Exit.Process}, nil
		case !found.Running:
			return nil, fmt.Errorf("attach to %s: %w", id, ErrLost)
		}
		if err := pause(ctx, &wait); err != nil {
			return nil, err
		}
	}
}

// maxSockPath is the longest path of a socket on any platform, with some room.
const maxSockPath = 100

// dial connects to a child's socket.
func (r *Root) dial(ctx context.Context, id ID) (net.Conn, error) {
	path := r.path(id, sockName)
	if len(path) > maxSockPath {
		folder, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		defer func() { _ = folder.Close() }()
		path = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), sockName)
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// Keeper is the pid of a child's shim, also of one that is frozen and so answers nothing. 0:
// it is gone, or nobody can tell.
func (r *Root) Keeper(ctx context.Context, id ID) int {
	if id.check() != nil {
		return 0
	}
	conn, err := r.dial(ctx, id)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	return peerPID(u)
}

// refusal is what a shim says no with.
type refusal struct {
	words string
	ended bool
	full  bool
}

func (r *refusal) Error() string { return r.words }

// Is tells ErrEnded, which a shim says as long as it is there itself, and ErrFull.
func (r *refusal) Is(target error) bool {
	return r.ended && target == ErrEnded || r.full && target == ErrFull
}

// ask makes one request on a connection of its own, body following it, and takes
// the answer. The connection is the caller's to close if it isn't nil.
func (r *Root) ask(ctx context.Context, id ID, req request, body []byte) (net.Conn, answer, error) {
	var got answer
	conn, err := r.dial(ctx, id)
	if err != nil {
		return nil, got, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := json.Marshal(req)
	if err != nil {
		return conn, got, err
	}
	if _, err = conn.Write(append(append(line, '\n'), body...)); err == nil {
		line, err = bufio.NewReader(conn).ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &got)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && got.Error != "":
		err = &refusal{got.Error, got.Ended, got.Full}
	}
	return conn, got, err
}

// Refused reports whether an ErrEnded is a shim's own word: what was asked of it was
// not done, and was not before. Otherwise the shim is gone, and may have done it.
func Refused(err error) bool {
	var no *refusal
	return errors.As(err, &no) && no.ended
}

// call is ask with patience: a shim that lives is asked again if it couldn't be
// reached. For requests that may be repeated. ended: it can't be asked any more.
func (c *Child) call(ctx context.Context, req request, body []byte) (got answer, ended bool, err error) {
	for wait := (backoff{}); ; {
		conn, got, err := c.r.ask(ctx, c.id, req, body)
		if conn != nil {
			_ = conn.Close()
		}
		var no *refusal
		if err == nil || errors.As(err, &no) {
			return got, false, err
		}
		if ctx.Err() != nil {
			return got, false, context.Cause(ctx)
		}
		found, err := c.r.Find(c.id)
		if err != nil || !found.Running {
			return got, err == nil, err
		}
		if err := pause(ctx, &wait); err != nil {
			return got, false, err
		}
	}
}

// endPatience bounds how long End waits for a shim to take the request.
const endPatience = 10 * time.Second

// ErrEnded says that a command has ended, and so can't do what was asked of it.
var ErrEnded = errors.New("the command has ended")

// ErrFull says that what a command was to be told finds no room on the disk: nothing of it
// was told. It may be tried again.
var ErrFull = errors.New("the disk is full")

// NoRoom reports whether an error says that the disk is full, on this side or its shim's.
func NoRoom(err error) bool { return errors.Is(err, ErrFull) || noSpace(err) }

// End asks for the command's end: TERM to all of it, grace (0: Spec.Grace), KILL.
// It returns when the shim has taken that; Follow tells the end. Of several, the
// first counts. One that has ended already is no error. A command that waits at
// its gate never begins.
func (c *Child) End(reason string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(c.base, endPatience)
	defer cancel()
	_, _, err := c.call(ctx, request{Op: opEnd, Reason: reason, Grace: grace}, nil)
	return wrap(err, "end %s", c.id)
}

// EndStrays ends what the command has left behind since it was given a frame: whose
// parent has ended, and what that has started, TERM, grace, KILL. The command and all
// that descends from it goes on. One that has ended has nothing left.
func (c *Child) EndStrays(ctx context.Context, frame int64, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	_, _, err := c.call(ctx, request{Op: opStrays, N: frame, Grace: grace}, nil)
	return wrap(err, "end what %s has left behind", c.id)
}

// Read tells the shim that the spool was read up to an offset (see Spec.MaxUnread). To
// one that has ended, or of an older build, it says nothing.
func (c *Child) Read(ctx context.Context, upTo int64) error {
	_, _, err := c.call(ctx, request{Op: opRead, N: upTo}, nil)
	return wrap(err, "tell the shim of %s what was read", c.id)
}

// Status asks how the command is doing. ErrEnded: it has ended, Follow tells how.
func (c *Child) Status(ctx context.Context) (Status, error) {
	got, ended, err := c.call(ctx, request{Op: opStatus}, nil)
	switch {
	case ended:
		err = ErrEnded
	case err == nil && got.Status == nil:
		err = errors.New("its shim gave another answer")
	}
	if err != nil {
		return Status{}, fmt.Errorf("ask for the status of %s: %w", c.id, err)
	}
	return *got.Status, nil
}

// MaxFrame is the longest frame that Write takes.
const MaxFrame = 64 << 20

// Write gives the command's stdin frame n: numbers begin with 1 and leave no gap.
// Nil means that it is on the disk, and forwarded now or as the command reads; a
// number that was given before is nil at once, and not forwarded again. So what
// failed may be repeated. ErrEnded: the command has ended. A command that has
// closed its stdin is given nothing more, which is no error.
func (c *Child) Write(ctx context.Context, n int64, data []byte) error {
	if len(data) > MaxFrame {
		return fmt.Errorf("write frame %d to %s: %d bytes, at most %d: cut it into several", n, c.id, len(data), MaxFrame)
	}
	return c.stdin(ctx, request{Op: opStdin, N: n, Length: int64(len(data))}, data)
}

// CloseStdin ends the command's stdin, as frame n. See Write.
func (c *Child) CloseStdin(ctx context.Context, n int64) error {
	return c.stdin(ctx, request{Op: opStdin, N: n, EOF: true}, nil)
}

// Shut waits until the command is found to have closed its stdin, and gives the first
// frame that it didn't take whole: it surely hasn't read that, nor any after it. 0:
// nobody can tell, since it has ended, or its shim is of an older build.
func (c *Child) Shut(ctx context.Context) (int64, error) {
	got, ended, err := c.call(ctx, request{Op: opShut}, nil)
	var old *refusal
	if ended || errors.As(err, &old) {
		return 0, nil
	}
	return got.Shut, wrap(err, "learn whether %s reads on", c.id)
}

func (c *Child) stdin(ctx context.Context, req request, data []byte) error {
	_, ended, err := c.call(ctx, req, data)
	if ended {
		err = ErrEnded
	}
	return wrap(err, "write frame %d to %s", req.N, c.id)
}
