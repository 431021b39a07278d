package vault

import (
	"fmt"

	"holdfast/store"
)

// Fit is how a key and the credentials of a journal go together.
type Fit struct {
	KeyID  string   // of the key that there is; "": none
	Spoilt []string // names and ids of credentials that it doesn't open
}

// Fits holds a key against what a journal has, and changes nothing: want is the id of
// the key that the journal knows, "" if none. The error is a *KeyError, or says what is
// wrong with the key.
func Fits(source Source, want string, sealed []store.Sealed) (Fit, error) {
	var out Fit
	key, err := source.Read()
	if err != nil {
		return out, err
	}
	if key != nil {
		out.KeyID = key.id
	}
	if want == "" {
		return out, nil
	}
	if err := fits(key, want, source, len(sealed)); err != nil {
		return out, err
	}
	for i := range sealed {
		if _, err := key.Open(sealed[i].Value, purpose(&sealed[i])...); err != nil {
			out.Spoilt = append(out.Spoilt, fmt.Sprintf("%s (%s)", sealed[i].Name, sealed[i].ID))
		}
	}
	return out, nil
}

// fits says of a key, or of none, that it isn't the one that a journal knows.
func fits(key *Key, want string, source Source, n int) error {
	switch {
	case want == "" || key != nil && key.id == want:
		return nil
	case key == nil:
		return &KeyError{fmt.Sprintf("the journal's credentials are sealed with the key %s, and there is none in %s. %s", want, source.Where(), stands(n))}
	}
	return &KeyError{fmt.Sprintf("the journal's credentials are sealed with the key %s, and %s has the key %s. %s", want, source.Where(), key.id, stands(n))}
}
