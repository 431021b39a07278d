package shim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// A frame of stdin.log: its number (8 bytes), flags (4), length (4), big endian,
// then its bytes.
const (
	stdinHeader = 16
	stdinEOF    = 1
)

// stdinLog takes numbered frames, keeps each on the disk before it is forwarded,
// and forwards it once. Nobody waits for the command to read.
type stdinLog struct {
	file *os.File
	pipe *os.File // to the command
	last atomic.Int64
	end  atomic.Int64  // length of what is logged
	more chan struct{} // something was logged

	shutAt atomic.Int64  // the frame that it didn't take whole, since it has closed its stdin
	shut   chan struct{} // closed with that

	ended  atomic.Bool // the command has
	mu     sync.Mutex  // one frame at a time
	closed bool        // its end was logged
	taken  []uint64    // when each frame was, by tool.Ticks; 0: nobody knows
}

// openStdin makes the log and the pipe, and returns the command's end of that.
func openStdin(folder *os.File) (*stdinLog, *os.File, error) {
	file, err := openAt(folder, stdinName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return nil, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return &stdinLog{file: file, pipe: w, more: make(chan struct{}, 1), shut: make(chan struct{})}, r, nil
}

// take logs frame n, length bytes of body; nil if it is on the disk, now or before.
func (s *stdinLog) take(n, length int64, eof bool, body io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last.Load()
	switch {
	case n > 0 && n <= last:
		return nil // acknowledged again; what follows the line is left unread
	case s.ended.Load():
		return fmt.Errorf("stdin frame %d: %w", n, ErrEnded)
	case n != last+1:
		return fmt.Errorf("stdin frame %d: the next is %d", n, last+1)
	case s.closed:
		return fmt.Errorf("stdin frame %d: frame %d has closed it", n, last)
	case length < 0 || length > MaxFrame:
		return fmt.Errorf("stdin frame %d: %d bytes", n, length)
	}
	at := s.end.Load()
	ticks, err := tool.Ticks()
	if err != nil {
		ticks = 0
	}
	if err := s.log(at, n, length, eof, body); err != nil {
		// What it left is overwritten by the next try.
		return fmt.Errorf("stdin frame %d: %w", n, err)
	}
	Crash("shim.stdin_logged")
	s.closed = eof
	s.taken = append(s.taken, ticks)
	s.last.Store(n)
	s.end.Store(at + stdinHeader + length)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

// takenAt is when frame n was, by tool.Ticks: the command had not read it before.
func (s *stdinLog) takenAt(n int64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 1 || n > int64(len(s.taken)) || s.taken[n-1] == 0 {
		return 0, fmt.Errorf("stdin frame %d: nobody knows when it was given", n)
	}
	return s.taken[n-1], nil
}

func (s *stdinLog) log(at, n, length int64, eof bool, body io.Reader) error {
	if _, err := io.CopyN(io.NewOffsetWriter(s.file, at+stdinHeader), body, length); err != nil {
		return err
	}
	var header [stdinHeader]byte
	binary.BigEndian.PutUint64(header[:], uint64(n))
	if eof {
		binary.BigEndian.PutUint32(header[8:], stdinEOF)
	}
	binary.BigEndian.PutUint32(header[12:], uint32(length))
	if _, err := s.file.WriteAt(header[:], at); err != nil {
		return err
	}
	return s.file.Sync()
}

// forward gives the command what was logged, in order, as it reads, until its
// stdin ends or stop is called.
func (s *stdinLog) forward() {
	defer func() { _ = s.pipe.Close() }()
	for at := int64(0); ; {
		for at == s.end.Load() {
			<-s.more
		}
		var header [stdinHeader]byte
		if _, err := s.file.ReadAt(header[:], at); err != nil {
			return // the command sees the end of its stdin
		}
		if binary.BigEndian.Uint32(header[8:]) == stdinEOF {
			return
		}
		length := int64(binary.BigEndian.Uint32(header[12:]))
		if _, err := io.Copy(s.pipe, io.NewSectionReader(s.file, at+stdinHeader, length)); err != nil {
			if errors.Is(err, unix.EPIPE) { // it has closed its stdin, or ended
				s.shutAt.Store(int64(binary.BigEndian.Uint64(header[:])))
				close(s.shut)
			}
			return
		}
		Crash("shim.stdin_forwarded")
		at += stdinHeader + length
	}
}

// stop ends what forward writes: the command has ended, and the process is about to.
func (s *stdinLog) stop() {
	s.ended.Store(true)
	_ = s.pipe.Close()
}
