package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"holdfast/journal"
)

// Credential is what a list tells of one: all but its value.
type Credential struct {
	ID        string        `db:"id"` // of this value: another one under the same name has another
	OwnerID   string        `db:"owner_id"`
	Agent     string        `db:"agent"` // that gets it; "": every one
	Name      string        `db:"name"`  // of the variable
	Version   int64         `db:"version"`
	CreatedAt int64         `db:"created_at"` // when there was first a value under this name
	UpdatedAt int64         `db:"updated_at"` // when this one was stored
	UsedAt    sql.NullInt64 `db:"used_at"`    // when a process was last started with it, or with an earlier one
}

// Sealed is a credential with its encrypted value.
type Sealed struct {
	Credential
	Value []byte `db:"sealed"`
}

// MaxCredentials bounds what one owner may store, and what of theirs was replaced or
// deleted and is kept still when another one is stored.
const MaxCredentials = 100

// retiredFor is how long a value that was replaced or deleted stays at least, sealed.
const retiredFor = 10 * time.Minute

const (
	credentialColumns = "id, owner_id, agent, name, version, created_at, updated_at, used_at"
	credentialKey     = "credential_key" // of meta
)

// Credentials lists the owner's, by name, without any value.
func (s *Store) Credentials(ctx context.Context, owner string) ([]Credential, error) {
	var out []Credential
	err := s.read(ctx, func(q querier) error {
		out = nil
		return q.all(ctx, &out, "SELECT "+credentialColumns+" FROM credential WHERE owner_id = ? AND retired_at IS NULL ORDER BY name, agent", owner)
	})
	return out, err
}

// PutCredential stores a sealed value under the owner's name for an agent, in place of
// the one that is there: the last one counts. Its id is new, and says which value it
// is; a repeat under the same id changes nothing. It gives the sealed value that the
// journal has under the id then, which of a repeat may be another one. keyID names the
// key that sealed it: the journal takes those of one key only. Codes: conflict (another
// key, too many, too many that were replaced), unprocessable (the id is another
// credential's), unavailable.
func (s *Store) PutCredential(ctx context.Context, c Sealed, keyID string) (stored []byte, err error) {
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		if err := t.holdKey(ctx, keyID); err != nil {
			return err
		}
		d := t.dialect()
		var before Sealed
		switch err := t.get(ctx, &before, "SELECT "+credentialColumns+", sealed FROM credential WHERE id = ?", c.ID); {
		case err == nil && before.OwnerID == c.OwnerID && before.Agent == c.Agent && before.Name == c.Name:
			stored = before.Value
			return nil
		case err == nil:
			return CredentialKeyReused()
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		stored = c.Value
		if err := t.boundRetired(ctx, c.OwnerID); err != nil {
			return err
		}
		var was []Credential
		if err := t.all(ctx, &was, "UPDATE credential SET retired_at = "+d.now()+" WHERE owner_id = ? AND agent = ? AND name = ? AND retired_at IS NULL RETURNING "+credentialColumns,
			d.nowArg(), c.OwnerID, c.Agent, c.Name); err != nil {
			return err
		}
		var n int
		if err := t.get(ctx, &n, "SELECT count(*) FROM credential WHERE owner_id = ? AND retired_at IS NULL", c.OwnerID); err != nil {
			return err
		}
		if n >= MaxCredentials {
			return journal.Errorf(journal.Conflict, "You have %d credentials, and more can't be stored. This one was not stored. Delete one that nothing needs.", n).Typed("too-many-credentials")
		}
		version, used := int64(1), sql.NullInt64{}
		var since any
		if len(was) > 0 {
			version, since, used = was[0].Version+1, was[0].CreatedAt, was[0].UsedAt
		}
		_, err := t.exec(ctx, "INSERT INTO credential (id, owner_id, agent, name, sealed, version, created_at, updated_at, used_at) VALUES (?, ?, ?, ?, ?, ?, coalesce(?, "+d.now()+"), "+d.now()+", ?)",
			c.ID, c.OwnerID, c.Agent, c.Name, c.Value, version, since, d.nowArg(), d.nowArg(), used)
		return err
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// boundRetired refuses an owner's next value while too many that were replaced or
// deleted are kept for the mask.
func (t *tx) boundRetired(ctx context.Context, owner string) error {
	var n int
	if err := t.get(ctx, &n, "SELECT count(*) FROM credential WHERE owner_id = ? AND retired_at IS NOT NULL", owner); err != nil {
		return err
	}
	if n >= MaxCredentials {
		return journal.Errorf(journal.Conflict, "You have replaced or deleted %d values in a short time. They are still needed to hide what running agents may say, so this one was not stored. What is stored stays as it is. Try again in 10 minutes, or once your agents have ended.", n).Typed("too-many-replaced")
	}
	return nil
}

// CredentialKeyReused is ADM-4 for credentials.
func CredentialKeyReused() error {
	return journal.Errorf(journal.Unprocessable, "This form's key was used already, to store another credential or value. Nothing was stored. Load the page again and type it anew.").Typed("idempotency-key-reused")
}

// holdKey notes the key of the first credential, and refuses another one. Its row is
// locked, so that two servers with two keys can't both be first.
func (t *tx) holdKey(ctx context.Context, keyID string) error {
	var have string
	if err := t.get(ctx, &have, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = meta.value RETURNING value", credentialKey, keyID); err != nil {
		return err
	}
	if have != keyID {
		return journal.Errorf(journal.Conflict, "This server's key isn't the one with which the journal's credentials are sealed, so the credential was not stored. Those that are stored stay as they are. Give this server the key file of the one that stored them.").Typed("other-key")
	}
	return nil
}

// DeleteCredential takes a credential from its owner's agents. Codes: not_found, gone
// (it was deleted or replaced meanwhile), unavailable.
func (s *Store) DeleteCredential(ctx context.Context, owner, id string) (deleted Credential, err error) {
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		err := t.get(ctx, &deleted, "UPDATE credential SET retired_at = "+d.now()+" WHERE id = ? AND owner_id = ? AND retired_at IS NULL RETURNING "+credentialColumns, d.nowArg(), id, owner)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var was Credential
		err = t.get(ctx, &was, "SELECT "+credentialColumns+" FROM credential WHERE id = ? AND owner_id = ?", id, owner)
		if errors.Is(err, sql.ErrNoRows) {
			return noCredential()
		}
		if err != nil {
			return err
		}
		var now int
		if err := t.get(ctx, &now, "SELECT count(*) FROM credential WHERE owner_id = ? AND agent = ? AND name = ? AND retired_at IS NULL", owner, was.Agent, was.Name); err != nil {
			return err
		}
		if now > 0 {
			return journal.Errorf(journal.Gone, "Another value of %s was stored meanwhile, and stays. Nothing was deleted. Look at the list, and delete that one if you mean it.", was.Name).Typed("credential-replaced")
		}
		return journal.Errorf(journal.Gone, "%s was deleted already.", was.Name).Typed("credential-deleted")
	})
	return deleted, err
}

// CredentialDeleted reports whether a credential was the owner's and was deleted, not
// replaced, as long as that is known.
func (s *Store) CredentialDeleted(ctx context.Context, owner, id string) (bool, error) {
	var n int
	err := s.read(ctx, func(q querier) error {
		return q.get(ctx, &n, "SELECT count(*) FROM credential c WHERE c.id = ? AND c.owner_id = ? AND c.retired_at IS NOT NULL AND NOT EXISTS "+
			"(SELECT 1 FROM credential o WHERE o.owner_id = c.owner_id AND o.agent = c.agent AND o.name = c.name AND o.retired_at IS NULL)", id, owner)
	})
	return n > 0, err
}

// Credential gives one of the owner's, without its value. Code: not_found.
func (s *Store) Credential(ctx context.Context, owner, id string) (Credential, error) {
	var out Credential
	err := s.read(ctx, func(q querier) error {
		err := q.get(ctx, &out, "SELECT "+credentialColumns+" FROM credential WHERE id = ? AND owner_id = ? AND retired_at IS NULL", id, owner)
		if errors.Is(err, sql.ErrNoRows) {
			return noCredential()
		}
		return err
	})
	return out, err
}

func noCredential() error {
	return journal.Errorf(journal.NotFound, "There is no such credential. It may have been deleted.").Typed("no-such-credential")
}

// SessionCredentials gives what an agent of a session is to get, sealed and by name:
// its owner's for this agent, and those for every agent whose names it has none of.
func (s *Store) SessionCredentials(ctx context.Context, sessionID, agent string) ([]Sealed, error) {
	return s.sealed(ctx, "retired_at IS NULL AND owner_id = (SELECT owner_id FROM session WHERE id = ?) AND agent IN ('', ?)", sessionID, agent)
}

// OwnerCredentials is SessionCredentials for an agent that runs in no session.
func (s *Store) OwnerCredentials(ctx context.Context, owner, agent string) ([]Sealed, error) {
	return s.sealed(ctx, "retired_at IS NULL AND owner_id = ? AND agent IN ('', ?)", owner, agent)
}

func (s *Store) sealed(ctx context.Context, where string, args ...any) ([]Sealed, error) {
	var out []Sealed
	err := s.read(ctx, func(q querier) error {
		out = nil
		return q.all(ctx, &out, "SELECT "+credentialColumns+", sealed FROM credential WHERE "+where+" ORDER BY name, agent DESC", args...)
	})
	// One for this agent stands before the one for every agent.
	return slices.CompactFunc(out, func(a, b Sealed) bool { return a.Name == b.Name }), err
}

// SessionSecrets gives the ids of all credentials that a session's owner has or had.
func (s *Store) SessionSecrets(ctx context.Context, sessionID string) ([]string, error) {
	var out []string
	err := s.many(ctx, &out, "SELECT id FROM credential WHERE owner_id = (SELECT owner_id FROM session WHERE id = ?)", sessionID)
	return out, err
}

// SealedCredentials gives all that the journal has behind an id, in the order of their
// ids: also those that were replaced or deleted, whose values a process may still have.
func (s *Store) SealedCredentials(ctx context.Context, after string, limit int) ([]Sealed, error) {
	var out []Sealed
	err := s.read(ctx, func(q querier) error {
		out = nil
		return q.all(ctx, &out, "SELECT "+credentialColumns+", sealed FROM credential WHERE id > ? ORDER BY id LIMIT ?", after, limit)
	})
	return out, err
}

// SealedCredential gives one of whichever owner, also one that was replaced or deleted.
// Code: not_found.
func (s *Store) SealedCredential(ctx context.Context, id string) (Sealed, error) {
	var out Sealed
	err := s.read(ctx, func(q querier) error {
		err := q.get(ctx, &out, "SELECT "+credentialColumns+", sealed FROM credential WHERE id = ?", id)
		if errors.Is(err, sql.ErrNoRows) {
			return noCredential()
		}
		return err
	})
	return out, err
}

// CountCredentialProcesses counts the processes of agents that have credentials and of
// whose end the journal doesn't know.
func (s *Store) CountCredentialProcesses(ctx context.Context) (n int, err error) {
	err = s.read(ctx, func(q querier) error {
		var rows []AgentProcessRow
		n = 0
		if err := q.all(ctx, &rows, "SELECT p.id, p.session_id, s.state FROM agent_process p JOIN session s ON s.id = p.session_id"); err != nil {
			return err
		}
		for i := range rows {
			st, err := (&sessionRow{ID: rows[i].SessionID, State: rows[i].State.String}).state()
			if err != nil {
				return err
			}
			if st.Process != nil && st.Process.ID == rows[i].ID && len(st.Process.Credentials) > 0 {
				n++
			}
		}
		return nil
	})
	return n, err
}

// CredentialKey tells the id of the key that the journal's credentials are sealed with,
// "" if none was ever stored, and how many there are, with those that were replaced or
// deleted and may still be in use.
func (s *Store) CredentialKey(ctx context.Context) (id string, n int, err error) {
	err = s.read(ctx, func(q querier) error {
		id, n, err = credentialState(ctx, q)
		return err
	})
	return id, n, err
}

func credentialState(ctx context.Context, q querier) (id string, n int, err error) {
	err = q.get(ctx, &id, "SELECT value FROM meta WHERE key = ?", credentialKey)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", 0, err
	}
	return id, n, q.get(ctx, &n, "SELECT count(*) FROM credential")
}

// CountCredentials counts the credentials that agents get, and their owners.
func (s *Store) CountCredentials(ctx context.Context) (owners, n int, err error) {
	err = s.read(ctx, func(q querier) error {
		return errors.Join(
			q.get(ctx, &owners, "SELECT count(DISTINCT owner_id) FROM credential WHERE retired_at IS NULL"),
			q.get(ctx, &n, "SELECT count(*) FROM credential WHERE retired_at IS NULL"),
		)
	})
	return owners, n, err
}

// UseCredentials notes that a process was started with credentials.
func (s *Store) UseCredentials(ctx context.Context, ids []string) error {
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		for _, id := range ids {
			if _, err := t.exec(ctx, "UPDATE credential SET used_at = "+d.now()+" WHERE id = ?", d.nowArg(), id); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropRetiredCredentials removes the values that were replaced or deleted and that no
// process can have any more: their owner's sessions have none, and one that was about
// to be started then has been.
func (s *Store) DropRetiredCredentials(ctx context.Context) error {
	var n int
	err := s.one(ctx, &n, "SELECT count(*) FROM credential WHERE retired_at IS NOT NULL")
	if err != nil || n == 0 {
		return err
	}
	return s.write(ctx, "", func(ctx context.Context, t *tx) error {
		d := t.dialect()
		_, err := t.exec(ctx, "DELETE FROM credential WHERE retired_at < "+d.now()+" - ? AND NOT EXISTS (SELECT 1 FROM agent_process p JOIN session s ON s.id = p.session_id WHERE s.owner_id = credential.owner_id)",
			d.nowArg(), retiredFor.Milliseconds())
		return err
	})
}

// ForgetCredentials removes all credentials of all owners and the id of their key, and
// tells how many of them were in use. It needs no key.
func (s *Store) ForgetCredentials(ctx context.Context) (n int, err error) {
	err = s.write(ctx, "", func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, "DELETE FROM meta WHERE key = ?", credentialKey); err != nil { // first, as whoever stores one locks it first
			return err
		}
		if err := t.get(ctx, &n, "SELECT count(*) FROM credential WHERE retired_at IS NULL"); err != nil {
			return err
		}
		_, err := t.exec(ctx, "DELETE FROM credential")
		return err
	})
	return n, err
}
