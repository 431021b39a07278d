package shim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"

	"holdfast/runner/tool"
)

// A frame of the spool is a header and a piece's bytes:
//
//	0  magic      1 byte
//	1  flags      1 byte: frameStderr, frameBinary
//	2  0          2 bytes
//	4  length     4 bytes, big endian as all
//	8  offset     8 bytes
//	16 dropped    8 bytes
//	24 checksum   4 bytes, of all before it and the bytes
//
// The checksum tells a frame that was being written when its shim was killed, and
// blocks that a host that went down never wrote.
const (
	frameMagic  = 0xF5
	frameStderr = 1
	frameBinary = 2
	headerBytes = 28

	// batchPieces pieces of at most pieceBytes are delivered at once: as tool does.
	batchPieces = 16
	pieceBytes  = 4 << 10
)

var checksums = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a piece's frame to buf.
func appendFrame(buf []byte, p tool.Piece) []byte {
	start := len(buf)
	var flags byte
	if p.Stream == "stderr" {
		flags |= frameStderr
	}
	if p.Binary {
		flags |= frameBinary
	}
	buf = append(buf, frameMagic, flags, 0, 0)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(p.Text)))
	buf = binary.BigEndian.AppendUint64(buf, uint64(p.Offset))
	buf = binary.BigEndian.AppendUint64(buf, uint64(p.Dropped))
	buf = append(append(buf, 0, 0, 0, 0), p.Text...)
	binary.BigEndian.PutUint32(buf[start+headerBytes-4:], checksum(buf[start:]))
	return buf
}

// checksum is that of a frame, whatever it holds as such.
func checksum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:headerBytes-4], checksums), checksums, frame[headerBytes:])
}

// parseFrame returns the piece at the start of buf and the length of its frame; 0
// if there is no whole one.
func parseFrame(buf []byte) (tool.Piece, int) {
	if len(buf) < headerBytes || buf[0] != frameMagic {
		return tool.Piece{}, 0
	}
	length := binary.BigEndian.Uint32(buf[4:])
	if int64(length) > int64(len(buf)-headerBytes) {
		return tool.Piece{}, 0
	}
	frame := buf[:headerBytes+int(length)]
	if checksum(frame) != binary.BigEndian.Uint32(frame[headerBytes-4:]) {
		return tool.Piece{}, 0
	}
	p := tool.Piece{
		Stream: "stdout", Text: string(frame[headerBytes:]), Binary: buf[1]&frameBinary != 0,
		Offset: int64(binary.BigEndian.Uint64(buf[8:])), Dropped: int64(binary.BigEndian.Uint64(buf[16:])),
	}
	if buf[1]&frameStderr != 0 {
		p.Stream = "stderr"
	}
	return p, len(frame)
}

// spoolWriter is the shim's end of the spool.
type spoolWriter struct {
	file *os.File
	buf  []byte
	end  atomic.Int64 // length of the whole frames
}

// write appends pieces. While the disk is full it waits for room, and the
// command on its pipe: nothing is lost. Another failure is an error.
func (s *spoolWriter) write(pieces []tool.Piece) error {
	s.buf = s.buf[:0]
	for _, p := range pieces {
		s.buf = appendFrame(s.buf, p)
	}
	for wait := (backoff{}); ; {
		// At its place, so that a second try overwrites what the first left.
		_, err := s.file.WriteAt(s.buf, s.end.Load())
		if err == nil {
			s.end.Add(int64(len(s.buf)))
			return nil
		}
		if !noSpace(err) {
			return fmt.Errorf("spool output: %w", err)
		}
		<-wait.next().C
	}
}

// spoolReader is a server's end: it goes from whole frame to whole frame.
type spoolReader struct {
	file *os.File
	at   int64
	buf  []byte
}

// openSpool opens a spool for reading from an offset on.
func openSpool(path string, from int64) (*spoolReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &spoolReader{file: file, at: from, buf: make([]byte, batchPieces*(headerBytes+pieceBytes))}, nil
}

func (s *spoolReader) close() { _ = s.file.Close() }

// next returns the whole frames that follow, 16 at most, and the offset behind
// them. None: there is nothing whole yet.
func (s *spoolReader) next() (pieces []tool.Piece, next int64, err error) {
	n, err := s.file.ReadAt(s.buf, s.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.at, fmt.Errorf("read spool: %w", err)
	}
	next = s.at
	for rest := s.buf[:n]; len(pieces) < batchPieces; {
		piece, length := parseFrame(rest)
		if length == 0 {
			break
		}
		pieces = append(pieces, piece)
		rest = rest[length:]
		next += int64(length)
	}
	return pieces, next, nil
}

// deliver hands on all whole frames that are there, and returns the offset behind
// them.
func (s *spoolReader) deliver(ctx context.Context, deliver func([]tool.Piece, int64) error) (int64, error) {
	for {
		if ctx.Err() != nil {
			return s.at, context.Cause(ctx)
		}
		pieces, next, err := s.next()
		if err != nil || len(pieces) == 0 {
			return s.at, err
		}
		if err := deliver(pieces, next); err != nil {
			return s.at, err
		}
		s.at = next
	}
}
