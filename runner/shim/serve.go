package shim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// requestPatience bounds how long a client takes to make its request, and to
	// take the answer.
	requestPatience = 30 * time.Second
	// maxRequest bounds the line of a request.
	maxRequest = 64 << 10
	readBytes  = 4 << 10
)

// serve answers clients for as long as the shim lives.
func (p *process) serve(l *net.UnixListener) {
	for wait := (backoff{}); ; {
		conn, err := l.AcceptUnix()
		if err != nil { // no descriptors left, say
			<-wait.next().C
			continue
		}
		wait = backoff{}
		go p.receive(conn)
	}
}

// receive serves one connection. Whatever comes over it, the command goes on.
func (p *process) receive(conn *net.UnixConn) {
	defer func() { _ = recover() }()
	defer func() { _ = conn.Close() }()
	if !trusted(conn) {
		return
	}
	p.enter()
	defer p.leave()
	_ = conn.SetDeadline(time.Now().Add(requestPatience))
	in := bufio.NewReaderSize(conn, readBytes)
	var req request
	if err := readRequest(in, &req); err != nil {
		reply(conn, answer{Error: err.Error()})
		return
	}
	switch req.Op {
	case opAttach:
		facts := p.cmd.Process()
		reply(conn, answer{Process: &facts, Mute: p.mutedAt()})
		_ = conn.SetDeadline(time.Time{})
		_, _ = io.Copy(io.Discard, in) // until it leaves
	case opFollow:
		_ = conn.SetDeadline(time.Time{})
		p.tell(conn)
	case opStatus:
		reply(conn, answer{Status: p.status()})
	case opEnd:
		p.end(req.Reason, req.Grace)
		reply(conn, answer{})
	case opRead:
		p.readTo(req.N)
		reply(conn, answer{})
	case opStrays:
		reply(conn, words(p.endStrays(req.N, req.Grace)))
	case opStdin:
		reply(conn, words(p.feed(req, in)))
		// A client whose frame isn't wanted may still be writing it, and is to read why.
		_, _ = io.Copy(io.Discard, in)
	case opShut:
		p.tellShut(conn)
	case opMute:
		p.tellWhen(conn, p.muted, func() answer { return answer{Mute: p.mutedAt()} })
	default:
		reply(conn, answer{Error: fmt.Sprintf("this shim doesn't know the request %q", req.Op)})
	}
}

// readRequest reads a line of bounded length.
func readRequest(in *bufio.Reader, into *request) error {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return json.Unmarshal(line, into)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(line) > maxRequest {
			return errors.New("the request is too long")
		}
	}
}

func reply(conn net.Conn, a answer) { _ = json.NewEncoder(conn).Encode(a) }

func words(err error) answer {
	if err == nil {
		return answer{}
	}
	return answer{Error: err.Error(), Ended: errors.Is(err, ErrEnded), Full: noSpace(err)}
}

// tell says each time that the spool has grown, until the client leaves. One that
// doesn't listen holds up nothing but this.
func (p *process) tell(conn net.Conn) {
	grown := make(chan struct{}, 1)
	grown <- struct{}{} // what grew before
	p.mu.Lock()
	p.followers[grown] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.followers, grown)
	}()
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close() // so that a write that waits ends
	}()
	for {
		select {
		case <-left:
			return
		case <-grown:
		}
		if _, err := conn.Write([]byte{'\n'}); err != nil {
			_ = conn.Close()
			<-left
			return
		}
	}
}

// tellShut answers when the command didn't take a frame, or not at all.
func (p *process) tellShut(conn net.Conn) {
	if p.stdin == nil {
		reply(conn, answer{Error: errNoStdin.Error()})
		return
	}
	p.tellWhen(conn, p.stdin.shut, func() answer { return answer{Shut: p.stdin.shutAt.Load()} })
}

// tellWhen answers when something is closed, unless the client leaves before.
func (p *process) tellWhen(conn net.Conn, closed <-chan struct{}, what func() answer) {
	_ = conn.SetDeadline(time.Time{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, conn)
	}()
	select {
	case <-closed:
		_ = conn.SetWriteDeadline(time.Now().Add(requestPatience))
		reply(conn, what())
	case <-left:
	}
	_ = conn.Close()
	<-left
}

var errNoStdin = errors.New("the command reads no stdin")

func (p *process) status() *Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Status{StartedAt: p.startedAt, OutputBytes: p.cmd.OutputBytes(), PID: p.cmd.Process().PID}
	if p.startedAt > 0 && p.spec.Timeout > 0 {
		s.Deadline = p.startedAt + p.spec.Timeout.Milliseconds()
	}
	if p.stdin != nil {
		s.StdinFrames = p.stdin.last.Load()
	}
	return s
}

// strayLooks and strayPause are how often is looked for what was left behind: whoever
// leaves it may just be ending.
const (
	strayLooks = 3
	strayPause = 100 * time.Millisecond
)

// endStrays ends what the command has left behind since it was given a frame.
func (p *process) endStrays(n int64, grace time.Duration) error {
	if p.stdin == nil {
		return errNoStdin
	}
	since, err := p.stdin.takenAt(n)
	if err != nil {
		return err
	}
	var left []int
	for i := range strayLooks {
		if i > 0 {
			select {
			case <-p.ctx.Done(): // all of it is being ended
				return nil
			case <-time.After(strayPause):
			}
		}
		if left, err = p.cmd.EndStrays(p.ctx, since, grace); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("processes %v can't be ended", left)
	}
	return nil
}

func (p *process) feed(req request, body io.Reader) error {
	if p.stdin == nil {
		return errNoStdin
	}
	return p.stdin.take(req.N, req.Length, req.EOF, body)
}
