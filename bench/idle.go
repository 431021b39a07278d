package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/store"
)

// idleSessions are those that the idle streams are spread over.
const idleSessions = 100

// spareFiles are what a process holds beside its streams.
const spareFiles = 200

// idle is B5: what the built binary holds for each stream that has nothing to say.
func (b *bench) idle(ctx context.Context) error {
	n, note := b.streams, ""
	if most := raiseFiles(uint64(n)+spareFiles) - spareFiles; most < n {
		n, note = most, fmt.Sprintf(" The system allows no more: of %d that were asked for.", b.streams)
	}
	rows := [][]string{{"streams", "RSS before, MB", "with them, MB", "KiB each", "to reach", "processor time meanwhile, cores"}}
	for _, f := range feeds {
		row, err := b.idleStreams(ctx, f, n)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		rows = append(rows, row)
	}
	b.out.title("B5: %d idle streams over %d sessions, SQLite, over HTTP", n, idleSessions)
	b.out.table(rows)
	b.out.line("\nRead %s after the last one was opened, so that each has had its heartbeats and polls.%s", b.settle, note)
	return nil
}

// raiseFiles lets this process and those that it starts open so many files, and
// gives how many they may.
func raiseFiles(want uint64) int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return int(want)
	}
	if l.Cur < want || l.Max < want {
		// Only a privileged process may raise the second one.
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: max(want, l.Max)}) == nil {
			return int(want)
		}
		want = min(want, l.Max)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: l.Max}) // else the streams tell
	}
	return int(want)
}

func (b *bench) idleStreams(ctx context.Context, f feed, n int) (_ []string, err error) {
	s, err := b.newSide(ctx, sqlite)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.db.drop(ctx)) }()
	sessions := make([]string, idleSessions)
	var code string
	err = s.beside(ctx, func(st *store.Store) error {
		err := each(ctx, len(sessions), func(ctx context.Context, i int) (err error) {
			sessions[i], err = newSession(ctx, st, s.owner, nil)
			return err
		})
		if err != nil {
			return err
		}
		code, err = st.UserLink(ctx, s.owner)
		return err
	})
	if err != nil {
		return nil, err
	}
	sv, err := b.startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sv.stop()) }()
	v, err := newViewer(sv, code)
	if err != nil {
		return nil, err
	}
	before, err := sv.memory("VmRSS")
	if err != nil {
		return nil, err
	}
	subs := make([]*subscriber, n)
	defer func() { err = errors.Join(err, closeAll(subs)) }()
	err = each(ctx, n, func(ctx context.Context, i int) (err error) {
		subs[i], err = v.open(ctx, f, sessions[i%len(sessions)], 1)
		return err
	})
	if err != nil {
		return nil, err
	}
	used, err := sv.processorTime()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := pause(ctx, b.settle); err != nil {
		return nil, err
	}
	after, err1 := sv.memory("VmRSS")
	more, err2 := sv.processorTime()
	return []string{
		f.name, fmt.Sprintf("%.0f", before), fmt.Sprintf("%.0f", after), fmt.Sprintf("%.1f", (after-before)*1024/float64(n)), "≤ 64",
		fmt.Sprintf("%.2f", (more-used).Seconds()/time.Since(begin).Seconds()),
	}, errors.Join(err1, err2)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// processorTime is what the process has used so far, in its own code and in the kernel.
func (sv *server) processorTime() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", sv.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("the processor time can't be read")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	kernel, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+kernel) * (time.Second / 100), errors.Join(err1, err2) // ticks of 10 ms on Linux
}
