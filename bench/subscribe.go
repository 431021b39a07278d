package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// feed is a kind of stream that a server offers.
type feed struct {
	name string
	path string // of a session, after a seq
	page bool   // for browsers, by cookie; else for programs, by token
}

// feeds are those that are measured.
var feeds = []feed{
	{name: "events for programs", path: "/api/v1/sessions/%s/events?after=%d"},
}

// viewer is who may read a server's streams.
type viewer struct {
	address, token, cookie string
}

// newViewer signs a browser in with the code of a link, too, if a feed wants one.
func newViewer(sv *server, code string) (viewer, error) {
	v := viewer{address: sv.address, token: sv.token}
	c := newClient(sv, 1)
	defer c.http.CloseIdleConnections()
	if err := c.signIn(code); err != nil {
		return v, err
	}
	v.cookie = c.cookie
	return v, nil
}

// open opens a stream of a session after a seq.
func (v viewer) open(ctx context.Context, f feed, session string, after int64) (*subscriber, error) {
	auth := "Authorization: Bearer " + v.token
	if f.page {
		auth = "Cookie: " + v.cookie
	}
	return subscribe(ctx, v.address, fmt.Sprintf(f.path, session, after), auth)
}

// subscriber is one open stream.
type subscriber struct {
	conn net.Conn
	body *bufio.Reader
}

// subscribe returns once the answer has begun.
func subscribe(ctx context.Context, address, path, auth string) (_ *subscriber, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if err = conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n%s\r\n\r\n", path, auth); err != nil {
		return nil, fmt.Errorf("ask for a stream: %w", err)
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1024), nil) //nolint:bodyclose // the connection is closed
	if err != nil {
		return nil, fmt.Errorf("begin a stream: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("stream %s: %s", path, res.Status)
	}
	return &subscriber{conn, bufio.NewReaderSize(res.Body, 1024)}, conn.SetReadDeadline(time.Time{})
}

func (s *subscriber) close() error { return s.conn.Close() }

// next waits for the next message that has an id, and gives all of it.
func (s *subscriber) next() (seq int64, message string, err error) {
	var text strings.Builder
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return 0, "", err
		}
		if line == "\n" {
			if seq > 0 {
				return seq, text.String() + line, nil
			}
			text.Reset()
			continue
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			if seq, err = strconv.ParseInt(strings.TrimSpace(id), 10, 64); err != nil {
				return 0, "", fmt.Errorf("read the id of a message: %w", err)
			}
		}
		text.WriteString(line)
	}
}

// closeAll ends streams; whoever reads one hears an error.
func closeAll(subs []*subscriber) error {
	var errs []error
	for _, s := range subs {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}
