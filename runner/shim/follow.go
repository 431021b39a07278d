package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"holdfast/runner/tool"
)

// releasePatience bounds the wait for a shim that has written its record and is
// about to be gone.
const releasePatience = 5 * time.Second

// Follow reads the spool on from a byte offset, 0 or one that it gave, and hands
// on pieces in order, at most 16 at once, with the offset behind the last of them,
// as they come, until the command has ended and all is delivered; then it returns
// the exit record. Memory is bounded however fast the command prints.
//
// When ctx ends it returns its cause, when deliver fails its error, as it is; the
// command goes on. ErrLost: the shim ended without a record; what it had spooled
// was delivered. Several Follows of one child, also of two processes, don't
// disturb each other.
func (c *Child) Follow(ctx context.Context, from int64, deliver func(pieces []tool.Piece, next int64) error) (Exit, error) {
	f := &follower{r: c.r, id: c.id, at: from, deliver: deliver}
	defer f.close()
	for wait := (backoff{}); ; {
		exit, err := f.look(ctx)
		if exit != nil || err != nil {
			return f.end(ctx, exit, err)
		}
		if f.conn == nil {
			if err := f.connect(ctx); err != nil {
				// It may be ending, or just beginning; or it has no room for us, and then
				// the spool is looked at all the same.
				if err := pause(ctx, &wait); err != nil {
					return Exit{}, err
				}
				continue
			}
			wait = backoff{}
		}
		if err := f.wait(ctx); err != nil {
			return Exit{}, err
		}
	}
}

// Await is Follow for who doesn't want what the command prints: it reads none of it, so
// it takes no longer however much there is.
func (c *Child) Await(ctx context.Context) (Exit, error) {
	return c.Follow(ctx, 0, nil)
}

// follower is one Follow.
type follower struct {
	r       *Root
	id      ID
	at      int64
	deliver func([]tool.Piece, int64) error // nil: nothing is read
	spool   *spoolReader
	conn    net.Conn // tells that the spool has grown; nil: ask for one
	stop    func() bool
}

func (f *follower) close() {
	f.hangUp()
	if f.spool != nil {
		f.spool.close()
	}
}

// look delivers what is there. It returns the exit record if that was all, and
// ErrLost if no more will come.
func (f *follower) look(ctx context.Context) (*Exit, error) {
	// What is known is read before the spool: a record says that the spool is
	// complete, a free lock that it grows no more.
	found := Found{Running: true}
	exit, err := f.r.record(f.id)
	if exit == nil && err == nil && f.conn == nil {
		found, err = f.r.Find(f.id)
		exit = found.Exit
	}
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", f.id, err)
	}
	if f.deliver != nil {
		if err := f.read(ctx); err != nil {
			return nil, err
		}
	}
	if exit == nil && !found.Running {
		return nil, fmt.Errorf("follow %s: %w", f.id, ErrLost)
	}
	if exit != nil && f.deliver != nil && f.at < exit.Spool {
		// The host went down, and its disk didn't keep what it had said it would.
		exit.Error = joinWords(exit.Error, fmt.Sprintf("its output can't be read from byte %d on of %d in the spool", f.at, exit.Spool))
	}
	return exit, nil
}

// read delivers the whole frames that are there.
func (f *follower) read(ctx context.Context) error {
	if f.spool == nil {
		spool, err := openSpool(f.r.path(f.id, spoolName), f.at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow %s: %w", f.id, err)
		}
		f.spool = spool
	}
	at, err := f.spool.deliver(ctx, f.deliver)
	f.at = at
	return err
}

// connect asks the shim to tell when the spool has grown.
func (f *follower) connect(ctx context.Context) error {
	conn, err := f.r.dial(ctx, f.id)
	if err != nil {
		return err
	}
	line, err := json.Marshal(request{Op: opFollow})
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	if err != nil {
		_ = conn.Close()
		return err
	}
	f.conn = conn
	f.stop = context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	return nil
}

func (f *follower) hangUp() {
	if f.conn == nil {
		return
	}
	f.stop()
	_ = f.conn.Close()
	f.conn = nil
}

// wait returns when the spool may have grown or the shim has hung up.
func (f *follower) wait(ctx context.Context) error {
	var told [512]byte // many at once if we were slow
	_, err := f.conn.Read(told[:])
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		f.hangUp()
	}
	return nil
}

// end returns the record when the shim is gone, so that its folder can be removed.
func (f *follower) end(ctx context.Context, exit *Exit, err error) (Exit, error) {
	if err != nil {
		return Exit{}, err
	}
	f.hangUp()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	for wait := (backoff{last: time.Millisecond}); ; {
		found, err := f.r.Find(f.id)
		if err != nil || !found.Running || pause(ctx, &wait) != nil {
			return *exit, nil // that it isn't gone yet takes nothing from the record
		}
	}
}

func joinWords(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
