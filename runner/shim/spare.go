package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process of this binary takes tens of milliseconds to begin, on some hosts. So
// one is begun ahead while a command runs: the next command needn't wait for it.

// spareLife is how long a shim waits to be wanted.
const spareLife = 5 * time.Minute

// newborn is a shim that hasn't been handed a child's lock and folder.
type newborn struct {
	process *os.Process
	line    *net.UnixConn // its first descriptor's other end
	ahead   bool          // it was kept ready
}

// begin starts a shim. It ends by itself when the line does.
func (r *Root) begin() (*newborn, error) {
	ours, theirs, err := line()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := &exec.Cmd{
		Path: r.exe, Args: []string{"holdfast", "shim"}, Dir: "/", Env: r.environ(),
		ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	r.keep(cmd.Process)
	return &newborn{process: cmd.Process, line: ours}, nil
}

// line makes two ends of a socket, closed on exec.
func line() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make its socket: %w", err)
	}
	theirs = os.NewFile(uintptr(ends[1]), "line")
	ours, err = lineOf(os.NewFile(uintptr(ends[0]), "line"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// lineOf makes a connection of a socket's file, which it closes.
func lineOf(file *os.File) (*net.UnixConn, error) {
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("it isn't a Unix socket"), conn.Close())
	}
	return u, nil
}

// newborn gives the shim that was kept ready, or starts one.
func (r *Root) newborn() (*newborn, error) {
	r.sparing.Lock()
	b := r.spare
	r.spare = nil
	r.sparing.Unlock()
	if b != nil {
		return b, nil
	}
	return r.begin()
}

// keepSpare has a shim ready for the next command. That it can't be started is
// that command's to tell.
func (r *Root) keepSpare() {
	r.sparing.Lock()
	defer r.sparing.Unlock()
	if r.spare != nil || r.closed {
		return
	}
	if b, err := r.begin(); err == nil {
		b.ahead = true
		r.spare = b
	}
}

// Close ends the shim that is kept ready, if there is one, and waits for its end.
// Commands go on. The root can be used further, and keeps none ready any more.
func (r *Root) Close() {
	r.sparing.Lock()
	defer r.sparing.Unlock()
	r.closed = true
	if r.spare != nil {
		_, _ = r.spare.line.Close(), r.spare.process.Kill() // it has nothing to lose
		r.await(r.spare.process)
		r.spare = nil
	}
}

// hand gives a shim its child's lock and folder, which are closed here: from now
// on it is the shim that holds the lock, also while it hasn't looked.
func (b *newborn) hand(lock, folder *os.File) error {
	defer func() { _, _ = lock.Close(), folder.Close() }()
	_, _, err := b.line.WriteMsgUnix([]byte{'\n'}, unix.UnixRights(int(lock.Fd()), int(folder.Fd())), nil)
	return err
}

// take waits for what hand gives. False: nobody wanted this shim, and it has
// nothing to record anywhere.
func (p *process) take() bool {
	_ = p.line.SetReadDeadline(time.Now().Add(spareLife))
	defer context.AfterFunc(p.ctx, func() { _ = p.line.SetReadDeadline(time.Unix(1, 0)) })()
	byte1, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(2*4))
	n, m, _, _, err := p.line.ReadMsgUnix(byte1, rights)
	if err != nil || n == 0 {
		return false
	}
	_ = p.line.SetReadDeadline(time.Time{})
	fds, err := descriptors(rights[:m])
	if err != nil || len(fds) != 2 {
		return false
	}
	p.born = unixMilli()
	p.lock, p.folder = os.NewFile(uintptr(fds[0]), lockName), os.NewFile(uintptr(fds[1]), "folder")
	return true
}

func descriptors(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, err
	}
	return unix.ParseUnixRights(&messages[0])
}
