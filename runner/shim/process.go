package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// process is a shim: the one that has the command.
type process struct {
	line         *net.UnixConn // to the server that it was born of
	lock, folder *os.File
	born         int64

	// ctx ends when the command is to end.
	ctx    context.Context
	cancel context.CancelCauseFunc

	spec  Spec
	spool *spoolWriter
	stdin *stdinLog // nil: the command reads /dev/null
	cmd   *tool.Command

	mu        sync.Mutex
	startedAt int64 // 0: at its gate
	clients   int   // connections, and the server that it was born of
	orphan    *time.Timer
	followers map[chan struct{}]bool
	mute      *int64        // of the spool; set before muted is closed
	muted     chan struct{} // closed when the command lives on without its stdout
	read      int64         // of the spool, as servers say
	more      chan struct{} // closed when that grows; nil: nobody waits for it
}

// shortCommand is how long a command runs for which it isn't worth while to make
// its shim small.
const shortCommand = time.Second

func unixMilli() int64 { return time.Now().UnixMilli() }

var (
	errNoOrder   = errors.New("the server went away before it had said what to run")
	errAbandoned = errors.New("the server closed the gate, or went away before it had opened it")
	errBuried    = errors.New("it was concluded already that its outcome is unknown; nothing of it has run")
)

// live takes the command from its birth to its end.
func (p *process) live() Exit {
	lines := bufio.NewReader(p.line)
	var first order
	if err := readLine(lines, &first); err != nil || first.Spec == nil {
		return p.unstarted(errNoOrder)
	}
	p.spec = first.Spec.spec()
	if err := p.prepare(); err != nil {
		p.say(words(err))
		return p.unstarted(err)
	}
	defer p.cmd.Abandon() // does nothing once it has run
	facts := p.cmd.Process()
	p.say(answer{Process: &facts})
	if err := p.await(lines); err != nil {
		p.say(words(err))
		return p.unstarted(err)
	}
	return p.run()
}

func readLine(r *bufio.Reader, into any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// say answers the server. If it isn't there any more, nobody has to know.
func (p *process) say(a answer) { _ = json.NewEncoder(p.line).Encode(a) }

// prepare makes what the command needs and holds it at its gate.
func (p *process) prepare() error {
	file, err := openAt(p.folder, spoolName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return fmt.Errorf("make spool: %w", err)
	}
	p.spool = &spoolWriter{file: file}
	ts := p.spec.Spec
	ts.Output, ts.Alone = p.output, true
	if p.spec.Stdin {
		if p.stdin, ts.Stdin, err = openStdin(p.folder); err != nil {
			return fmt.Errorf("make stdin: %w", err)
		}
		defer func() { _ = ts.Stdin.Close() }()
	}
	listener, err := p.listen()
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	if p.cmd, err = tool.Prepare(ts); err != nil {
		return err
	}
	go p.serve(listener)
	return nil
}

// listen makes the socket. It is bound by a relative name, since the path of the
// folder may be longer than a socket's may be.
func (p *process) listen() (*net.UnixListener, error) {
	if err := p.folder.Chdir(); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: sockName, Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
		err = os.Chmod(sockName, 0o600)
	}
	return l, errors.Join(err, os.Chdir("/"))
}

// await waits until the gate is to be opened; the error says why it isn't.
func (p *process) await(lines *bufio.Reader) error {
	told := make(chan bool, 1)
	go func() {
		var o order
		told <- readLine(lines, &o) == nil && o.Go
		for readLine(lines, &o) == nil {
			continue // till the server goes, or lets go
		}
		p.leave()
	}()
	select {
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	case opened := <-told:
		if !opened {
			return errAbandoned
		}
	}
	// The lock is ours: so nobody can come to another conclusion from here on.
	buried, err := existsAt(p.folder, tombstoneName)
	if err == nil && buried {
		err = errBuried
	}
	return err
}

// run opens the gate and returns when all of the command has ended.
func (p *process) run() Exit {
	Crash("shim.before_gate")
	// Not synced: a host that goes down loses what ran, too, and this is but a help
	// for whoever comes to the same id again.
	if mark, err := openAt(p.folder, openedName, unix.O_WRONLY|unix.O_CREAT); err == nil {
		_ = mark.Close()
	}
	p.mu.Lock()
	p.startedAt = unixMilli()
	p.mu.Unlock()
	done := make(chan tool.Result, 1)
	go func() { done <- p.cmd.Run(p.ctx) }()
	go p.watchStdout()
	if p.stdin != nil {
		go p.stdin.forward()
	}
	var result tool.Result
	select {
	case <-p.cmd.Opened():
		Crash("shim.after_gate")
		p.say(answer{Gone: true})
		// The script and the environment are the command's now. A short one isn't held up.
		free := time.AfterFunc(shortCommand, debug.FreeOSMemory)
		result = <-done
		free.Stop()
	case result = <-done:
		if result.Opened {
			p.say(answer{Gone: true})
		} else {
			p.say(answer{Error: fmt.Sprintf("the command ended at its gate: %v", result.Err)})
		}
	}
	if p.stdin != nil {
		p.stdin.stop()
	}
	return p.ended(result)
}

func (p *process) output(pieces []tool.Piece) error {
	p.awaitReader()
	if err := p.spool.write(pieces); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers {
		select {
		case f <- struct{}{}:
		default: // it will look anyway
		}
	}
	return nil
}

// awaitReader waits until not too much is unread, or the command is to end: its pipe
// holds little more.
func (p *process) awaitReader() {
	for p.spec.MaxUnread > 0 {
		p.mu.Lock()
		if p.spool.end.Load()-p.read < p.spec.MaxUnread {
			p.mu.Unlock()
			return
		}
		if p.more == nil {
			p.more = make(chan struct{})
		}
		more := p.more
		p.mu.Unlock()
		select {
		case <-more:
		case <-p.ctx.Done():
			return
		}
	}
}

// readTo notes that a server has read the spool up to an offset.
func (p *process) readTo(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset <= p.read {
		return
	}
	p.read = offset
	if p.more != nil {
		close(p.more)
		p.more = nil
	}
}

// end has the command end, once: the first reason counts.
func (p *process) end(reason string, grace time.Duration) {
	p.cancel(&tool.Interruption{Reason: reason, Grace: grace})
}

// enter and leave count who is attached. Without anybody, the command's days are
// numbered.
func (p *process) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients++; p.orphan != nil {
		p.orphan.Stop()
		p.orphan = nil
	}
}

func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients--; p.clients > 0 {
		return
	}
	patience := p.spec.Orphan
	if patience <= 0 {
		patience = defaultOrphan
	}
	var timer *time.Timer
	timer = time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.orphan == timer { // else somebody came at the last moment
			p.end(ReasonOrphaned, 0)
		}
	})
	p.orphan = timer
}

// unstarted is the record of a command of which nothing has run.
func (p *process) unstarted(why error) Exit {
	exit := Exit{StartedAt: p.born, EndedAt: unixMilli(), Error: why.Error()}
	var how *tool.Interruption
	if errors.As(why, &how) {
		exit.Reason = how.Reason
	}
	if p.cmd != nil {
		exit.Process = p.cmd.Process()
	}
	return exit
}

// ended is the record of a command that has run, or was to.
func (p *process) ended(r tool.Result) Exit {
	exit := Exit{
		Started: r.Opened, ExitCode: r.ExitCode, Signal: r.Signal, Reason: r.Reason, OutputBytes: r.OutputBytes, DroppedBytes: r.DroppedBytes,
		Survivors: r.Survivors, StartedAt: p.startedAt, EndedAt: unixMilli(), Spool: p.spool.end.Load(), Process: p.cmd.Process(),
	}
	if !r.Opened { // how the launcher ended says nothing of the script
		exit.ExitCode, exit.Signal = nil, ""
	}
	if r.Err != nil {
		exit.Error = r.Err.Error()
	}
	return exit
}

// triesToRecord is how often a record is tried that fails for another reason than
// a full disk.
const triesToRecord = 8

// keepRecord puts the record on the disk, after the spool. While the disk is full
// it waits for room, and holds the lock: the command has ended, but as long as
// nobody can know how, it isn't lost.
func (p *process) keepRecord(exit Exit) error {
	tries := 0
	for wait := (backoff{}); ; {
		err := p.writeRecord(&exit)
		if err == nil {
			return nil
		}
		if !noSpace(err) {
			tries++
		}
		if tries == triesToRecord {
			return err
		}
		<-wait.next().C
	}
}

func (p *process) writeRecord(exit *Exit) error {
	if p.spool != nil && exit.Spool > 0 {
		switch err := p.spool.file.Sync(); {
		case noSpace(err):
			return err
		case err != nil:
			// How it ended matters more than what it printed; a second sync would tell nothing.
			exit.Error, exit.Spool = joinWords(exit.Error, "its output may not be on the disk: "+err.Error()), p.spool.end.Load()
		}
	}
	data, err := json.Marshal(exit)
	if err != nil {
		return err
	}
	file, err := openAt(p.folder, recordDraft, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	if err := fillSynced(file, data); err != nil {
		return err
	}
	dir := int(p.folder.Fd())
	if err := unix.Renameat(dir, recordDraft, dir, recordName); err != nil {
		return err
	}
	return p.folder.Sync()
}
