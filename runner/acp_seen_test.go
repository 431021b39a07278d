package runner_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/store"
	"holdfast/store/storetest"
)

// An agent that would write a whole file doesn't say whether there is one: that is looked
// at when it is asked, and what would be lost stands in the request. If the file changes
// before the answer, it is asked anew.
//
// proves PER-2 PER-6
func TestACP_SeesWhatWouldBeReplaced(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]string{"no old text": "null", "an empty one": `""`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seesWhatWouldBeReplaced(t, old)
		})
	}
}

func seesWhatWouldBeReplaced(t *testing.T, old string) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		request := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"Write","kind":"edit","content":[{"type":"diff","path":"precious.txt","oldText":` + old + `,"newText":"x\\n"},{"type":"diff","path":"new.txt","oldText":` + old + `,"newText":"y"}]},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}`
		_, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Write","kind":"edit"}'
echo '`+request+`'; hear; say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'; stop 3; read -r l`)
		b := setup(t, s, with)
		precious := filepath.Join(b.dir, "precious.txt")
		if err := os.WriteFile(precious, []byte("all\nthere is\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		first := b.pending(id)[0]
		if seen := string(first.Metadata); !strings.Contains(seen, `"seen":[{"path":"precious.txt","state":"exists","bytes":13,"text":"all\nthere is\n"},{"path":"new.txt","state":"new"}]`) || !strings.Contains(seen, `--- precious.txt\n+++ precious.txt\n- all\n- there is\n+ x\n--- /dev/null\n+++ new.txt\n`) {
			t.Errorf("the request says %s", seen)
		}
		if err := os.WriteFile(precious, []byte("something else\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.decide(first.ID, store.Decision{Reply: journal.ReplyOnce, Digest: first.Digest})
		b.untilKind(id, journal.KindPermissionAsked, 2)
		again := b.pending(id)
		if len(again) != 1 || !strings.Contains(string(again[0].Metadata), "something else") || b.callsOf(id) != `Write: waiting, ""` {
			t.Fatalf("after a change %+v is asked, calls %s", again, b.callsOf(id))
		}
		if why := `"asked_again":"It was allowed before, and wasn’t run. Since then what lies in precious.txt has changed."`; !strings.Contains(string(again[0].Metadata), why) || strings.Contains(string(first.Metadata), "asked_again") {
			t.Errorf("it doesn't say why: %s", again[0].Metadata)
		}
		b.decide(again[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: again[0].Digest})
		b.untilState(id, journal.StateReady)
		if got := b.callsOf(id); got != `Write: succeeded by person, ""` {
			t.Errorf("calls %s", got)
		}
	})
}

// What can't be looked at isn't known, what is guarded isn't read, and what is kept is
// bounded.
//
// proves PER-2 JRN-6
func TestSeeFiles(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a": "the", "empty": "", ".env": "KEY=1", "big": strings.Repeat("x", 7000), "binary": "a\x00", "latin": "\xe9"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(ws, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(ws, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(ws, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(ws, "in")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a": "exists 3 the", filepath.Join(ws, "a"): "exists 3 the", "in": "exists 3 the", "empty": "exists 0 ", ".env": "exists 5 -", "big": "exists 7000 -", "binary": "exists 2 -", "latin": "exists 1 -",
		"none": "new 0 -", "none/deep": "new 0 -", "a/deep": "unknown 0 -", "dir": "unknown 0 -", "fifo": "unknown 0 -", "out": "unknown 0 -", "/etc/hostname": "unknown 0 -", "~/x": "unknown 0 -", "../x": "unknown 0 -",
	} {
		f := runner.SeeFiles([]string{path}, ws)[0]
		text := "-"
		if f.Text != nil {
			text = *f.Text
		}
		if got := fmt.Sprintf("%s %d %s", f.State, f.Bytes, text); got != want || f.Path != path {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("file-%d", i))
	}
	if raw, err := json.Marshal(runner.SeeFiles(many, ws)); err != nil || len(raw) > 10<<10 || len(raw) < 4<<10 {
		t.Errorf("%d bytes are kept, %v", len(raw), err)
	}
}
