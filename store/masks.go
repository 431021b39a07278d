package store

import (
	"sync"

	"holdfast/journal"
)

// masks are what is masked in which journals (OWN-3): the server's own secrets in all,
// and an owner's in the owner's.
type masks struct {
	secrets []string // the server's
	base    *journal.Cleaner
	owners  sync.Map // *journal.Cleaner by owner: of those who have secrets
}

// Mask tells the store values of an owner that must not be journalled in the owner's
// sessions (OWN-3), from now on. In others' sessions they stand as they are: what
// somebody stores changes nothing of what others see, and they learn nothing of it.
func (s *Store) Mask(owner string, secrets ...string) {
	c, ok := s.masks.owners.Load(owner)
	if !ok {
		c, _ = s.masks.owners.LoadOrStore(owner, journal.NewCleaner(s.masks.secrets))
	}
	c.(*journal.Cleaner).Learn(secrets...)
}

// Cleaner is the one through which all goes that is journalled of an owner; "": what
// belongs to nobody.
func (s *Store) Cleaner(owner string) *journal.Cleaner {
	if c, ok := s.masks.owners.Load(owner); ok {
		return c.(*journal.Cleaner)
	}
	return s.masks.base
}
