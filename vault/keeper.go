package vault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"holdfast/journal"
	"holdfast/store"
)

// Keeper stores credentials sealed, and opens them for agents. It is safe for use by
// several goroutines.
type Keeper struct {
	st     *store.Store
	source Source

	mu     sync.Mutex
	key    *Key              // nil: there is none yet
	opened map[string]string // values by the ids of credentials, which name one value each
	spoilt map[string]error  // those that don't open although the key is the right one
}

// KeyError says that a server's key doesn't fit the credentials of its journal.
type KeyError struct{ msg string }

func (e *KeyError) Error() string { return e.msg }

// Open reads the key and holds it against the journal: all that is stored is opened
// with it, and masked from then on (OWN-3). If it doesn't fit the error is a *KeyError,
// which says what still holds and what to do.
func Open(ctx context.Context, st *store.Store, source Source) (*Keeper, error) {
	k := &Keeper{st: st, source: source, opened: map[string]string{}, spoilt: map[string]error{}}
	if err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// Where says for people where this server's key is, or would be made.
func (k *Keeper) Where() string { return k.source.Where() }

// load reads the key if there is none yet, and checks that it is the journal's. The
// lock is held.
func (k *Keeper) load(ctx context.Context) error {
	want, n, err := k.st.CredentialKey(ctx)
	if err != nil {
		return err
	}
	if k.key == nil {
		if k.key, err = k.source.Read(); err != nil {
			return &KeyError{err.Error() + ". " + stands(n)}
		}
	}
	return fits(k.key, want, k.source, n)
}

// stands says what holds although the key doesn't fit, and what can be done.
func stands(n int) string {
	return fmt.Sprintf("Nothing is lost: all sessions and %d stored credentials are in the journal as they were. Bring the key of the server that stored them (--key-file, or %s); or, if it is gone, run holdfast credential forget, after which people store theirs again", n, KeyVariable)
}

// Refresh learns what other servers have stored, so that it is masked here, too.
func (k *Keeper) Refresh(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return err
	}
	const page = 500
	after := ""
	for {
		list, err := k.st.SealedCredentials(ctx, after, page)
		if err != nil {
			return err
		}
		for i := range list {
			after = list[i].ID
			if _, err := k.open(&list[i]); err != nil && k.spoilt[after] == nil {
				return err
			}
		}
		if len(list) < page {
			return nil
		}
	}
}

// open gives the value of a credential, which is masked before anybody has it. The
// lock is held.
func (k *Keeper) open(c *store.Sealed) (string, error) {
	if value, ok := k.opened[c.ID]; ok {
		return value, nil
	}
	if k.key == nil { // forgotten and stored again meanwhile, by another server
		return "", &KeyError{fmt.Sprintf("there is no key in %s for the credential %s (%s)", k.source.Where(), c.Name, c.ID)}
	}
	value, err := k.key.Open(c.Value, purpose(c)...)
	if err != nil {
		k.spoilt[c.ID] = &KeyError{fmt.Sprintf("the credential %s (%s) is of no use: %v. All others are as they were. Its owner can store it again", c.Name, c.ID, err)}
		return "", k.spoilt[c.ID]
	}
	k.st.Mask(c.OwnerID, journal.Forms(value)...)
	k.opened[c.ID] = value
	return value, nil
}

// Spoilt says of each credential that doesn't open, although the key is the journal's.
func (k *Keeper) Spoilt() []error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.spoilt))
}

// purpose is what a value is sealed for.
func purpose(c *store.Sealed) []string { return []string{c.OwnerID, c.Agent, c.Name, c.ID} }

// New is a credential that somebody stores.
type New struct {
	Agent string // that gets it; "": every one
	Name  string // of the variable
	Value string
	Key   string // of the form: the same again stores nothing more
}

// id is the credential's, the same for the same form.
func (n New) id(owner string) string {
	return "crd_" + journal.Hash(owner + "\x00" + n.Key)[:32]
}

// Put checks a credential, seals it, and stores it in place of the owner's one of this
// name for this agent: the last one counts. The key is made if there is none yet. The
// same form sent again is taken as the same, and gives the same id. Codes: unprocessable
// (see Check; the form's key was used for something else), conflict (another key, too
// many), unavailable.
func (k *Keeper) Put(ctx context.Context, owner string, n New) (id string, err error) {
	if err := n.Check(); err != nil {
		return "", err
	}
	if err := k.make(ctx); err != nil {
		return "", err
	}
	c := store.Sealed{Credential: store.Credential{ID: n.id(owner), OwnerID: owner, Agent: n.Agent, Name: n.Name}}
	k.mu.Lock()
	key := k.key
	was, known := k.opened[c.ID]
	k.mu.Unlock()
	if known && was != n.Value {
		return "", store.CredentialKeyReused()
	}
	c.Value = key.Seal(n.Value, purpose(&c)...)
	k.st.Mask(owner, journal.Forms(n.Value)...)
	if err := k.st.PutCredential(ctx, c, key.id); err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened[c.ID] = n.Value
	return c.ID, nil
}

// make has a key, of its own making if the journal knows none.
func (k *Keeper) make(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.load(ctx)
	if err == nil && k.key == nil {
		k.key, err = k.source.Make()
	}
	if err == nil {
		return nil
	}
	var je *journal.Error
	if errors.As(err, &je) {
		return err
	}
	refused := journal.Errorf(journal.Conflict, "The credential was not stored: this server can't seal it. Those that are stored stay as they are. Whoever runs the server sees by holdfast doctor what its key lacks.").Typed("no-key")
	refused.Err = err
	return refused
}

// Given is what a process of an agent gets of credentials.
type Given struct {
	Env     []string // NAME=value
	Secrets []string // what is masked in all that the process says
	Names   []string // of the variables
	IDs     []string // of the credentials: others, or none, means other values
}

// ForSession gives what the agent of a session gets. All of it is masked already.
func (k *Keeper) ForSession(ctx context.Context, sessionID, agent string) (Given, error) {
	list, err := k.st.SessionCredentials(ctx, sessionID, agent)
	if err != nil {
		return Given{}, err
	}
	return k.give(ctx, list)
}

// ForOwner gives what an agent of an owner gets that is only looked at.
func (k *Keeper) ForOwner(ctx context.Context, owner, agent string) (Given, error) {
	list, err := k.st.OwnerCredentials(ctx, owner, agent)
	if err != nil {
		return Given{}, err
	}
	return k.give(ctx, list)
}

func (k *Keeper) give(ctx context.Context, list []store.Sealed) (Given, error) {
	var out Given
	if len(list) == 0 {
		return out, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key == nil {
		if err := k.load(ctx); err != nil {
			return out, err
		}
	}
	for i := range list {
		c := &list[i]
		value, err := k.open(c)
		if err != nil {
			return Given{}, err
		}
		out.Env = append(out.Env, c.Name+"="+value)
		out.Secrets = append(out.Secrets, journal.Forms(value)...)
		out.Names = append(out.Names, c.Name)
		out.IDs = append(out.IDs, c.ID)
	}
	return out, nil
}

// Secrets gives what is masked in all that runs for a session's owner.
func (k *Keeper) Secrets(ctx context.Context, sessionID string) ([]string, error) {
	ids, err := k.st.SessionSecrets(ctx, sessionID)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, id := range ids {
		if value, ok := k.opened[id]; ok {
			out = append(out, journal.Forms(value)...)
		}
	}
	return out, nil
}

// Started notes that a process was started with what was given.
func (k *Keeper) Started(ctx context.Context, g Given) error {
	if len(g.IDs) == 0 {
		return nil
	}
	return k.st.UseCredentials(ctx, g.IDs)
}

// Tidy learns what others have stored and drops what nothing needs any more.
func (k *Keeper) Tidy(ctx context.Context) error {
	return errors.Join(k.Refresh(ctx), k.st.DropRetiredCredentials(ctx))
}
