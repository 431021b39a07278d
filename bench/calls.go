package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast/journal"
)

// calls is B9: what a call costs around its command. One caller, one after the
// other; against the command alone and three fsyncs.
func (b *bench) calls(ctx context.Context) (err error) {
	rows := [][]string{{"database", "ms a call", "bare ms", "ratio", "to reach"}}
	for _, e := range b.engines() {
		pairs, err := b.callPairs(ctx, e)
		if err != nil {
			return err
		}
		of := func(value func(pair) float64) spread { return spreadOf(pairs, value) }
		rows = append(rows, []string{
			string(e), tenths(of(func(p pair) float64 { return 1000 / p.product.rate })), tenths(of(func(p pair) float64 { return 1000 / p.bare.rate })),
			of(func(p pair) float64 { return p.bare.rate / p.product.rate }).ratio(), "≤ 3.00",
		})
	}
	b.out.title("B9: a call of `true`, everything journalled")
	b.out.table(rows)
	return nil
}

func tenths(s spread) string { return fmt.Sprintf("%.1f (%.1f..%.1f)", s.mid, s.least, s.most) }

func (b *bench) engines() []engine {
	if b.postgres == "" {
		return []engine{sqlite}
	}
	return []engine{sqlite, postgres}
}

// trueSteps is how many calls a mission of B9 makes.
const trueSteps = 20

func (b *bench) callPairs(ctx context.Context, e engine) (pairs []pair, err error) {
	s, err := b.newSide(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.db.drop(ctx)) }()
	sv, err := b.startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	steps := strings.Repeat("```sh\ntrue\n```\n\n", trueSteps)
	return b.rounds(ctx,
		func(ctx context.Context) (sample, error) {
			begin := time.Now()
			if _, err := sv.finish(ctx, steps); err != nil {
				return sample{}, err
			}
			return sample{rate: trueSteps / time.Since(begin).Seconds(), n: trueSteps}, nil
		},
		func(ctx context.Context) (sample, error) { return b.bareCalls(ctx, trueSteps) })
}

// bareCalls runs `true` and makes three small writes durable, n times.
func (b *bench) bareCalls(ctx context.Context, n int) (_ sample, err error) {
	f, err := os.Create(filepath.Join(b.dir, "bare-calls"))
	if err != nil {
		return sample{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	begin := time.Now()
	for range n {
		if err := exec.CommandContext(ctx, "true").Run(); err != nil {
			return sample{}, err
		}
		for range 3 {
			if _, err := f.WriteString("a row of the journal\n"); err != nil {
				return sample{}, err
			}
			if err := f.Sync(); err != nil {
				return sample{}, err
			}
		}
	}
	return sample{rate: float64(n) / time.Since(begin).Seconds(), n: n}, nil
}

// finish hands a mission over, and waits until its turn has ended well. It gives
// the session.
func (sv *server) finish(ctx context.Context, text string) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	key := "mission-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	if err := sv.request(ctx, "POST", "/api/v1/sessions", key, mission(sv.work, text), &made); err != nil {
		return "", err
	}
	for after := int64(0); ; {
		var page struct {
			Events []struct {
				Seq  int64        `json:"seq"`
				Kind journal.Kind `json:"kind"`
			} `json:"events"`
		}
		if err := sv.get(ctx, fmt.Sprintf("/api/v1/sessions/%s/events?after=%d&limit=1000&wait=20s", made.ID, after), &page); err != nil {
			return "", err
		}
		for _, e := range page.Events {
			if after = e.Seq; e.Kind == journal.KindTurnEnded {
				return made.ID, sv.endedWell(ctx, made.ID)
			}
		}
	}
}

func (sv *server) endedWell(ctx context.Context, session string) error {
	var one struct {
		State journal.ExecutionState `json:"state"`
	}
	err := sv.get(ctx, "/api/v1/sessions/"+session, &one)
	if err == nil && one.State != journal.StateReady {
		err = fmt.Errorf("the mission of %s ended %s", session, one.State)
	}
	return err
}

// flood is B10: the output of one command through its shim into the journal,
// with its bound raised, against the same into a file.
func (b *bench) flood(ctx context.Context) (err error) {
	rows := [][]string{{"database", "MB/s", "bare MB/s", "ratio", "server's memory, MB: before, peak", "the shim's own", "to reach"}}
	for _, e := range b.engines() {
		row, err := b.floodOn(ctx, e)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	b.out.title("B10: %d MB of output of one command", b.floodBytes/1_000_000)
	b.out.table(rows)
	return nil
}

func (b *bench) floodOn(ctx context.Context, e engine) (row []string, err error) {
	s, err := b.newSide(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.db.drop(ctx)) }()
	sv, err := b.startServer(ctx, s, "--max-output="+strconv.Itoa(4*b.floodBytes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	command := fmt.Sprintf("yes 'a line of output, as commands print them, of some length' | head -c %d", b.floodBytes)
	before, err := sv.memory("VmRSS")
	if err != nil {
		return nil, err
	}
	var rates []pair
	shim := 0.0
	for range b.floods {
		var p pair
		watching, stop := context.WithCancel(ctx)
		most := make(chan float64, 1)
		go func() { most <- sv.shimMemory(watching) }()
		begin := time.Now()
		_, err := sv.finish(ctx, "```sh\n"+command+"\n```\n")
		p.product.rate = float64(b.floodBytes) / 1e6 / time.Since(begin).Seconds()
		stop()
		shim = max(shim, <-most)
		if err != nil {
			return nil, err
		}
		if p.bare.rate, err = b.bareFlood(ctx, command); err != nil {
			return nil, err
		}
		rates = append(rates, p)
	}
	peak, err := sv.memory("VmHWM")
	if err != nil {
		return nil, err
	}
	of := func(value func(pair) float64) spread { return spreadOf(rates, value) }
	return []string{
		string(e), tenths(of(func(p pair) float64 { return p.product.rate })), tenths(of(func(p pair) float64 { return p.bare.rate })),
		of(func(p pair) float64 { return p.product.rate / p.bare.rate }).ratio(), fmt.Sprintf("%.0f, %.0f", before, peak), fmt.Sprintf("%.1f", shim), "≥ 0.30",
	}, nil
}

// bareFlood writes a command's output to a file, makes that durable, and gives MB a second.
func (b *bench) bareFlood(ctx context.Context, command string) (rate float64, err error) {
	f, err := os.Create(filepath.Join(b.dir, "bare-flood"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	cmd := exec.CommandContext(ctx, "sh", "-c", command+" | cat")
	cmd.Stdout = f
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return float64(b.floodBytes) / 1e6 / time.Since(begin).Seconds(), nil
}

// shimMemory looks at the private memory of the server's shims until the context
// ends, and gives the most that one had, in MB.
func (sv *server) shimMemory(ctx context.Context) (most float64) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", sv.cmd.Process.Pid))
		for _, list := range lists {
			pids, _ := os.ReadFile(list)
			for _, pid := range strings.Fields(string(pids)) {
				if mb, err := memoryOf(pid, "RssAnon"); err == nil { // it may have ended
					most = max(most, mb)
				}
			}
		}
		select {
		case <-ctx.Done():
			return most
		case <-look.C:
		}
	}
}
