package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/store"
)

// server is the built binary, serving one database.
type server struct {
	cmd     *exec.Cmd
	address string // host and port
	token   string
	home    string        // the folder of its state
	work    string        // the folder under which workspaces lie
	ready   time.Duration // from its start to the first answer of /healthz
	errs    *bytes.Buffer
	plug    *os.File // holds the only place, if there is one
}

// startServer serves a side's database. The owner may submit without a limit.
func (b *bench) startServer(ctx context.Context, s *side, flags ...string) (*server, error) {
	home, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, err
	}
	sv := &server{home: home, work: filepath.Join(home, "work")}
	if err := os.Mkdir(sv.work, 0o755); err != nil {
		return nil, err
	}
	err = s.beside(ctx, func(st *store.Store) (err error) {
		_, sv.token, err = st.AddToken(ctx, s.owner, "bench", store.ScopeAll, time.Hour)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sv, b.launch(ctx, s, sv, flags...)
}

// startAgain serves what a stopped server served, on its state folder.
func (b *bench) startAgain(ctx context.Context, s *side, was *server, flags ...string) (*server, error) {
	sv := &server{home: was.home, work: was.work, token: was.token}
	return sv, b.launch(ctx, s, sv, flags...)
}

// launch starts the process and waits until it answers.
func (b *bench) launch(ctx context.Context, s *side, sv *server, flags ...string) error {
	args := []string{
		"serve", "--addr=127.0.0.1:0", "--database=" + s.db.url, "--state=" + filepath.Join(sv.home, "state"),
		"--workspaces=" + sv.work, "--max-running=1", "--rate=1000000", "--burst=1000000", "--log-level=warn",
	}
	sv.errs = &bytes.Buffer{}
	sv.cmd = exec.CommandContext(ctx, b.binary, append(args, flags...)...)
	sv.cmd.Dir, sv.cmd.Stderr = sv.home, sv.errs
	out, err := sv.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := sv.cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	lines := bufio.NewScanner(out)
	for sv.address == "" && lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "listening on http://"); ok {
			sv.address = at
		}
	}
	if sv.address == "" {
		return errors.Join(fmt.Errorf("the server ended: %s", sv.errs.String()), sv.stop())
	}
	if err := sv.get(ctx, "/healthz", nil); err != nil {
		return errors.Join(err, sv.stop())
	}
	sv.ready = time.Since(begin)
	return nil
}

// stop kills the server: what it held is thrown away.
func (sv *server) stop() error {
	if sv.plug != nil {
		_ = sv.plug.Close() // its reader ends by that
	}
	if err := sv.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("end the server: %w", err)
	}
	_ = sv.cmd.Wait() // says that it was killed
	return nil
}

// take has a mission take the only place and keep it, so that prompts wait. It
// returns once the mission runs: opening a FIFO waits for who reads it.
func (sv *server) take(ctx context.Context) error {
	fifo := filepath.Join(sv.work, "plug")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return fmt.Errorf("make a FIFO: %w", err)
	}
	if err := sv.post(ctx, "/api/v1/sessions", "hold-the-place", mission(sv.work, "```sh timeout=2h\ncat plug\n```\n")); err != nil {
		return err
	}
	opened := make(chan error, 1)
	go func() {
		var err error
		sv.plug, err = os.OpenFile(fifo, os.O_WRONLY, 0)
		opened <- err
	}()
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	select {
	case err := <-opened:
		return err
	case <-limit.Done():
	}
	late := errors.New("the mission that holds the place didn't start")
	// Let the goroutine go: with a reader of ours, the open returns.
	r, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errors.Join(late, err)
	}
	return errors.Join(late, <-opened, r.Close())
}

func (sv *server) get(ctx context.Context, path string, into any) error {
	return sv.request(ctx, http.MethodGet, path, "", nil, into)
}

func (sv *server) post(ctx context.Context, path, key string, body any) error {
	return sv.request(ctx, http.MethodPost, path, key, body, nil)
}

// request is for what isn't timed.
func (sv *server) request(ctx context.Context, method, path, key string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+sv.address+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+sv.token)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil {
		return fmt.Errorf("read the answer to %s: %w", path, err)
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer.String())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Bytes(), into)
}

// memory reads what the process holds, in MB.
func (sv *server) memory(member string) (float64, error) {
	return memoryOf(strconv.Itoa(sv.cmd.Process.Pid), member)
}

// memoryOf reads what a process holds, in MB, as the kernel tells it.
func memoryOf(pid, member string) (float64, error) {
	data, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, fmt.Errorf("read the memory: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, member+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("there is no %s", member)
}
