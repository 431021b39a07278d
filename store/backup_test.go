package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// While four people write as fast as they can, each copy is whole: it has all
// that was acknowledged before it began, and verify finds nothing.
func TestBackup_WhileItIsWritten(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		if db.Name == "postgres" {
			_, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db"))
			storetest.WantCode(t, err, journal.Unsupported)
			return
		}
		dir := t.TempDir()
		owner := storetest.MustUser(t, s).ID
		var acked sync.Map
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		wrote := make(chan struct{}, 1)
		for i := range 4 {
			session := storetest.MustSession(t, s, owner).ID
			writers.Add(1)
			go func() {
				defer writers.Done()
				for n := 0; ctx.Err() == nil && n < 150; n++ {
					r, err := s.SubmitPrompt(t.Context(), owner, session, fmt.Sprintf("%d-%d", i, n), store.PromptInput{Text: strings.Repeat("x", 5000), Delivery: journal.Queue})
					if err != nil {
						t.Errorf("submit: %v", err)
						return
					}
					acked.Store(r.ID, session)
					select {
					case wrote <- struct{}{}:
					default:
					}
				}
			}()
		}
		for n := range 3 {
			<-wrote // it goes on
			before := map[string]string{}
			acked.Range(func(id, session any) bool { before[id.(string)] = session.(string); return true })
			file := filepath.Join(dir, fmt.Sprintf("copy %d?.db", n))
			size, err := s.Backup(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			wantCopy(t, file, size, before)
		}
		stop()
		writers.Wait()
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// wantCopy fails unless a copy is private, whole, and has what was acknowledged before it.
func wantCopy(t *testing.T, file string, size int64, before map[string]string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != size {
		t.Fatalf("the copy has the mode %v and %d bytes, told were %d: %v", info.Mode(), info.Size(), size, err)
	}
	c, err := store.Open(t.Context(), store.Options{URL: file, Admin: true})
	if err != nil {
		t.Fatalf("open the copy: %v", err)
	}
	storetest.CheckInvariants(t, c)
	for id, session := range before {
		if _, err := c.PromptTexts(t.Context(), session, []string{id}); err != nil {
			t.Errorf("the prompt %s, acknowledged before the copy began, isn't in it: %v", id, err)
		}
	}
	if len(before) == 0 {
		t.Error("nothing was acknowledged before the copy")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestBackup_Refuses(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, "sqlite").Open(t)
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{there, dangling, dir} {
		_, err := s.Backup(t.Context(), file)
		storetest.WantSlug(t, err, "file-exists")
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "precious" {
		t.Errorf("the file that was there holds %q, %v", b, err)
	}
	_, err := s.Backup(t.Context(), filepath.Join(dir, "no", "such", "folder"))
	storetest.WantSlug(t, err, "no-folder")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Backup(ended, filepath.Join(dir, "given up")); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Who takes the name while the copy is made keeps it.
func TestBackup_PublishOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part, file := filepath.Join(dir, "part"), filepath.Join(dir, "file")
	for name, text := range map[string]string{part: "copy", file: "somebody's"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	storetest.WantSlug(t, store.Publish(part, file), "file-exists")
	if b, err := os.ReadFile(file); err != nil || string(b) != "somebody's" {
		t.Errorf("it holds %q, %v", b, err)
	}
}
