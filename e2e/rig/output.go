package rig

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
)

// Output collects what processes print, one after the other, and lets a test wait
// for a line.
type Output struct {
	mu    sync.Mutex
	all   bytes.Buffer
	start int           // of the newest process
	more  chan struct{} // closed and replaced at each write
}

// NewOutput makes one.
func NewOutput() *Output { return &Output{more: make(chan struct{})} }

// Next says that another process begins.
func (o *Output) Next() io.Writer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.start = o.all.Len()
	return o
}

// Write takes what the process prints.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.all.Write(p)
}

// String gives what all of them have printed.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// Await gives the rest of the newest process' first whole line that holds mark,
// after the mark; "" if the process ends, or time does, before it prints one.
func (o *Output) Await(exited <-chan struct{}, mark string) string {
	late := time.After(Patience)
	for over := false; ; {
		o.mu.Lock()
		text, more := o.all.String()[o.start:], o.more
		o.mu.Unlock()
		sc := bufio.NewScanner(strings.NewReader(text[:strings.LastIndex(text, "\n")+1]))
		for sc.Scan() {
			if _, rest, ok := strings.Cut(sc.Text(), mark); ok {
				return rest
			}
		}
		if over {
			return ""
		}
		select {
		case <-more:
		case <-exited:
			over = true // look once more: the last words may have come with the end
		case <-late:
			return ""
		}
	}
}
