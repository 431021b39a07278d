package main

import (
	"encoding/json"
	"os"
	"sync"
)

// entry is a line of the log.
type entry struct {
	PID  int             `json:"pid"`
	What string          `json:"what"`
	Line json.RawMessage `json:"line,omitempty"` // received, if it is JSON
	Text string          `json:"text,omitempty"` // received, if not; or the outcome of a step
	Step string          `json:"step,omitempty"`
	Arg  json.RawMessage `json:"arg,omitempty"` // the step's, after {{…}}
	Exit *int            `json:"exit,omitempty"`
}

// What is logged.
const (
	wasStarted  = "started"
	wasReceived = "received"
	wasBegun    = "step" // before a step does anything
	wasDone     = "done" // run, touch, permission: after it took effect
	wasAnswered = "answered"
	wasClosed   = "closed" // stdin has ended
)

// logFile has each entry on the disk before add returns. The zero value logs nothing.
type logFile struct {
	mu   sync.Mutex
	file *os.File
}

func openLog(path string) (*logFile, error) {
	l := &logFile{}
	if path == "" {
		return l, nil
	}
	var err error
	l.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return l, err
}

func (l *logFile) add(e entry) {
	if l.file == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.PID = os.Getpid()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		fail(err)
	}
}
