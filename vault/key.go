package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// keyBytes is the length of a key.
const keyBytes = 32

// KeyVariable is the variable of the environment that may hold the key itself.
// There is no flag for it: a command line can be read by everybody.
const KeyVariable = "HOLDFAST_KEY"

// Key seals values with AES-256-GCM. It prints as its id.
type Key struct {
	id   string
	aead cipher.AEAD
}

// ID names the key. It is a part of a hash, from which nothing of the key follows.
func (k *Key) ID() string { return k.id }

// String is the id.
func (k *Key) String() string { return "key " + k.id }

// GoString is the id, too.
func (k *Key) GoString() string { return k.String() }

// errForm says what a key looks like.
var errForm = errors.New("a key is 64 hexadecimal digits, such as openssl rand -hex 32 prints")

// Parse reads a key: 64 hexadecimal digits. Its error doesn't repeat the text.
func Parse(text string) (*Key, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != keyBytes {
		return nil, errForm
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, errForm
	}
	// A nonce of 96 random bits for each value: there are far fewer than 2^32.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher of the key: %w", err)
	}
	sum := sha256.Sum256(append([]byte("holdfast key id v1\x00"), raw...))
	return &Key{id: hex.EncodeToString(sum[:8]), aead: aead}, nil
}

// Seal encrypts a value. It opens only with the same words for what it is for.
func (k *Key) Seal(value string, purpose ...string) []byte {
	return k.aead.Seal(nil, nil, []byte(value), bind(purpose))
}

// ErrSealed says that a value doesn't open: it was sealed with another key or for
// something else, or was damaged.
var ErrSealed = errors.New("it doesn't open with this key: it was sealed with another one or for another row, or was damaged")

// Open decrypts what Seal made. Its error is ErrSealed.
func (k *Key) Open(sealed []byte, purpose ...string) (string, error) {
	value, err := k.aead.Open(nil, nil, sealed, bind(purpose))
	if err != nil {
		return "", ErrSealed
	}
	return string(value), nil
}

// bind makes words data that no other words make.
func bind(words []string) []byte {
	out := []byte("holdfast credential v1")
	for _, w := range words {
		out = binary.BigEndian.AppendUint64(out, uint64(len(w)))
		out = append(out, w...)
	}
	return out
}

// Source is where a server's key is.
type Source struct {
	File string // its path
	Env  string // the key itself, of KeyVariable; it counts before the file
}

// Where says it for people.
func (s Source) Where() string {
	if s.Env != "" {
		return "the environment variable " + KeyVariable
	}
	return "the file " + s.File
}

// Read gives the key; nil: there is none yet. The error says what is wrong with it.
func (s Source) Read() (*Key, error) {
	if s.Env != "" {
		k, err := Parse(s.Env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", KeyVariable, err)
		}
		return k, nil
	}
	f, err := os.OpenFile(s.File, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the key: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("the key file %s is no regular file", s.File)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("the key file %s can be read by others (mode %04o): anybody may have it. chmod 600 closes it; if others use this machine, store new credentials with a new key", s.File, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	k, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("the key file %s: %w", s.File, err)
	}
	return k, nil
}

// Make gives the key, and makes its file if there is none. The file is whole and on
// the disk before it has its name, and replaces no other.
func (s Source) Make() (*Key, error) {
	k, err := s.Read()
	if k != nil || err != nil {
		return k, err
	}
	raw := make([]byte, keyBytes)
	_, _ = rand.Read(raw) // it never fails
	if err := s.write(hex.EncodeToString(raw) + "\n"); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %w", errWrite, err)
	}
	k, err = s.Read() // somebody else may have been first
	if k == nil && err == nil {
		err = fmt.Errorf("the key file %s was made, and is gone", s.File)
	}
	return k, err
}

// errWrite says that there is no key since its file can't be written.
var errWrite = errors.New("make the key file")

func (s Source) write(text string) (err error) {
	dir := filepath.Dir(s.File)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	draft := s.File + ".new-" + rand.Text()[:8]
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, s.File); err != nil { // unlike a rename it fails if the name is taken
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
