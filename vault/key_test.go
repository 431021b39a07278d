package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const one, other = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func mustKey(t *testing.T, text string) *Key {
	t.Helper()
	k, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A value opens with its key, for what it was sealed for, and in no other way.
//
// proves OWN-3
func TestKey_OpensForItsPurposeOnly(t *testing.T) {
	t.Parallel()
	k := mustKey(t, one)
	sealed := k.Seal("a value of mine", "usr_1", "claude", "API_KEY", "crd_1")
	if got, err := k.Open(sealed, "usr_1", "claude", "API_KEY", "crd_1"); err != nil || got != "a value of mine" {
		t.Errorf("got %q, %v", got, err)
	}
	for name, open := range map[string]func() (string, error){
		"another owner":  func() (string, error) { return k.Open(sealed, "usr_2", "claude", "API_KEY", "crd_1") },
		"another agent":  func() (string, error) { return k.Open(sealed, "usr_1", "", "API_KEY", "crd_1") },
		"another name":   func() (string, error) { return k.Open(sealed, "usr_1", "claude", "OTHER_KEY", "crd_1") },
		"another row":    func() (string, error) { return k.Open(sealed, "usr_1", "claude", "API_KEY", "crd_2") },
		"words run over": func() (string, error) { return k.Open(sealed, "usr_1c", "laude", "API_KEY", "crd_1") },
		"another key":    func() (string, error) { return mustKey(t, other).Open(sealed, "usr_1", "claude", "API_KEY", "crd_1") },
		"cut":            func() (string, error) { return k.Open(sealed[:5], "usr_1", "claude", "API_KEY", "crd_1") },
		"nothing":        func() (string, error) { return k.Open(nil, "usr_1", "claude", "API_KEY", "crd_1") },
		"with a flipped bit": func() (string, error) {
			bad := append([]byte(nil), sealed...)
			bad[len(bad)-1] ^= 1
			return k.Open(bad, "usr_1", "claude", "API_KEY", "crd_1")
		},
	} {
		if got, err := open(); !errors.Is(err, ErrSealed) || got != "" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if again := k.Seal("a value of mine", "usr_1", "claude", "API_KEY", "crd_1"); string(again) == string(sealed) {
		t.Error("the same value is sealed the same way twice")
	}
}

func TestKey_TellsNothingOfItself(t *testing.T) {
	t.Parallel()
	k := mustKey(t, one)
	if k.ID() == mustKey(t, other).ID() || strings.Contains(one, k.ID()) {
		t.Errorf("the id is %s", k.ID())
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		if text := fmt.Sprintf(format, k); format != "%d" && text != "key "+k.ID() {
			t.Errorf("%s prints %s", format, text)
		}
	}
	for _, bad := range []string{"", "00", one + "00", "zz" + one[2:], "s3cr3t-of-mine"} {
		if _, err := Parse(bad); err == nil || bad != "" && bad != "00" && strings.Contains(err.Error(), bad) {
			t.Errorf("of %q it says: %v", bad, err)
		}
	}
}

func TestSource_MakesOneFileOnce(t *testing.T) {
	t.Parallel()
	s := Source{File: filepath.Join(t.TempDir(), "state", "key")}
	if k, err := s.Read(); k != nil || err != nil {
		t.Fatalf("before: %v, %v", k, err)
	}
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			k, err := s.Make()
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two keys were made: %v", ids)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(s.File))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the key there is %v, %v", entries, err)
	}
	if info, err := os.Stat(s.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestSource_RefusesWhatIsNoKeyOfOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) Source {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return Source{File: path}
	}
	for name, s := range map[string]Source{
		"read by others": file("group", one+"\n", 0o640),
		"rubbish":        file("rubbish", "s3cr3t-rubbish", 0o600),
		"empty":          file("empty", "", 0o600),
		"a folder":       {File: dir},
		"bad variable":   {File: filepath.Join(dir, "none"), Env: "s3cr3t-rubbish"},
	} {
		k, err := s.Make()
		if k != nil || err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	s := Source{File: file("good", one, 0o600).File, Env: other}
	if k, err := s.Read(); err != nil || k.ID() != mustKey(t, other).ID() {
		t.Errorf("the variable doesn't count before the file: %v, %v", k, err)
	}
}
