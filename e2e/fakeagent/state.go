package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// state is the sessions, each with its history, and how often a prompt's entry was
// taken. It is a file of facts, appended to as they become true, or memory alone.
type state struct {
	mu       sync.Mutex
	file     *os.File
	sessions map[string][]json.RawMessage
	taken    map[int]int
}

// fact is a line of the file: a session exists, or had an update; or an entry was taken.
type fact struct {
	Session string          `json:"session,omitempty"`
	Update  json.RawMessage `json:"update,omitempty"`
	Taken   *int            `json:"taken,omitempty"`
}

func openState(path string) (*state, error) {
	s := &state{sessions: map[string][]json.RawMessage{}, taken: map[int]int{}}
	if path == "" {
		return s, nil
	}
	facts, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := bytes.LastIndexByte(facts, '\n') + 1
	for line := range bytes.Lines(facts[:whole]) {
		var f fact
		if err := json.Unmarshal(line, &f); err != nil {
			return nil, err
		}
		s.apply(f)
	}
	if s.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	if err := s.file.Truncate(int64(whole)); err != nil { // what a kill has cut off
		return nil, err
	}
	_, err = s.file.Seek(int64(whole), 0)
	return s, err
}

func (s *state) apply(f fact) {
	switch {
	case f.Taken != nil:
		s.taken[*f.Taken]++
	case f.Update != nil:
		s.sessions[f.Session] = append(s.sessions[f.Session], f.Update)
	default:
		s.sessions[f.Session] = nil
	}
}

// add makes a fact true. s.mu is held.
func (s *state) add(f fact) {
	s.apply(f)
	if s.file == nil {
		return
	}
	line, err := json.Marshal(f)
	if err == nil {
		_, err = s.file.Write(append(line, '\n'))
	}
	if err != nil {
		fail(err)
	}
}

func (s *state) newSession() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "fake-" + strings.ToLower(rand.Text()[:10])
	s.add(fact{Session: id})
	return id
}

func (s *state) remember(session string, update json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(fact{Session: session, Update: update})
}

// history is what a session was told; false: there is none of that id.
func (s *state) history(session string) ([]json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.sessions[session]
	return h, ok
}

// take reports whether an entry may be taken once more, and takes it. times 0: always.
func (s *state) take(entry, times int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if times > 0 && s.taken[entry] >= times {
		return false
	}
	s.add(fact{Taken: &entry})
	return true
}
