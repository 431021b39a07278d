package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/e2e/rig"

	"github.com/chromedp/chromedp"
)

// What of the rig is used everywhere, by a short name.
const patience = rig.Patience

var steps, effect, tail, eventually = rig.Steps, rig.Effect, rig.Tail, rig.Eventually

// places bounds how many worlds live at once: a browser takes a core for itself.
var places = make(chan struct{}, 2)

var workshop struct {
	dir  string // of the binary
	end  func() // ends Chromium
	once sync.Once
	ctx  context.Context
	err  error
}

// Neither the binary nor Chromium is there before a test asks: the crash suite
// walks through this package too, and runs nothing of it.
func TestMain(m *testing.M) {
	code := m.Run()
	if workshop.end != nil {
		workshop.end()
	}
	if workshop.dir != "" {
		_ = os.RemoveAll(workshop.dir)
	}
	os.Exit(code)
}

// binary builds the product once for all tests, without the race detector: what
// is looked at here is what the browser makes of it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-browser-*")
	if err != nil {
		return "", err
	}
	workshop.dir = dir
	to := filepath.Join(dir, "holdfast")
	cmd := exec.Command("go", "build", "-o", to, ".")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return to, nil
})

// mustBinary is binary for a test.
func mustBinary(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// chromium gives the context of the one Chromium, which starts with the first test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	workshop.once.Do(func() { workshop.ctx, workshop.end, workshop.err = startChromium() })
	if workshop.err != nil {
		t.Fatal(workshop.err)
	}
	return workshop.ctx
}

func startChromium() (context.Context, func(), error) {
	path, err := chromiumPath()
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	)
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx); err != nil {
		end()
		endAlloc()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return ctx, func() {
		_ = chromedp.Cancel(ctx) // it may have ended by itself
		endAlloc()
	}, nil
}

// chromiumPath finds the browser: TEST_CHROMIUM, which scripts/chromium sets, else in PATH.
func chromiumPath() (string, error) {
	if path := os.Getenv("TEST_CHROMIUM"); path != "" {
		return path, nil
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		return "", errors.New("there is no Chromium: run the tests by make, or by scripts/chromium -- go test ./e2e/browser")
	}
	return path, nil
}
