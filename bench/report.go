package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// report writes Markdown, so that it can be kept as it is.
type report struct {
	w   io.Writer
	err error
}

func (r *report) line(format string, args ...any) {
	if _, err := fmt.Fprintf(r.w, format+"\n", args...); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *report) title(format string, args ...any) { r.line("\n### "+format+"\n", args...) }

// table writes rows in columns of one width, the first row as the head.
func (r *report) table(rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("| " + cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+1))
		}
		r.line("%s|", line.String())
		if n == 0 {
			line.Reset()
			for i := range row {
				line.WriteString("|" + strings.Repeat("-", width[i]+2))
			}
			r.line("%s|", line.String())
		}
	}
}

// facts says on what the figures were taken, but not on whose machine.
func (b *bench) facts(ctx context.Context) error {
	b.out.title("Machine")
	rows := [][]string{
		{"what", "value"},
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"cores, system", fmt.Sprintf("%d, %s/%s %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, firstLine("/proc/sys/kernel/osrelease"))},
		{"load before (1, 5, 15 minutes)", load()},
		{"Go", runtime.Version()},
		{"rounds, each side's time in one", fmt.Sprintf("%d, %s", b.plan.rounds, b.slice)},
	}
	bi, err := buildinfo.ReadFile(b.binary)
	if err != nil {
		return fmt.Errorf("read what the binary is made of: %w", err)
	}
	for _, m := range bi.Deps {
		switch m.Path {
		case "modernc.org/sqlite", "github.com/lib/pq", "github.com/gofiber/fiber/v2", "github.com/valyala/fasthttp":
			rows = append(rows, []string{m.Path, m.Version})
		}
	}
	if b.postgres != "" {
		v, err := postgresVersion(ctx, b.postgres)
		if err != nil {
			return err
		}
		rows = append(rows, []string{"PostgreSQL", v})
	}
	b.out.table(rows)
	return nil
}

// load tells how busy the machine is: what the figures are to be read with.
func load() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(f[:min(3, len(f))], ", ")
}

// firstLine gives what a file of the kernel begins with, or a dash elsewhere.
func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "–"
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// build makes the binary as `make build` does.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the binary: %w", err)
	}
	return nil
}
