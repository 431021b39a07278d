package main

import (
	"context"

	"holdfast/store"
	"holdfast/views/components"
)

type credentialCmd struct {
	Forget credentialForgetCmd `cmd:"" help:"Delete all stored credentials of all users, and the id of their key: for when the key is lost. Works without the key."`
}

type credentialForgetCmd struct {
	Yes bool `help:"Do it; without, it is only said what would be deleted."`
}

// Run deletes all credentials, whatever key they were sealed with.
func (f *credentialForgetCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		key, _, err := st.CredentialKey(ctx)
		if err != nil {
			return err
		}
		if key == "" {
			s.say("No credential is stored, and no key is known. Nothing was done.\n")
			return nil
		}
		owners, n, err := st.CountCredentials(ctx)
		if err != nil {
			return err
		}
		if !f.Yes {
			s.say("%s of %s would be deleted, sealed with the key %s. Nothing was done. holdfast credential forget --yes deletes them.\n",
				components.Plural(n, "credential"), components.Plural(owners, "user"), key)
			return nil
		}
		if n, err = st.ForgetCredentials(ctx); err != nil {
			return err
		}
		s.say("Deleted: %s. The key %s is forgotten. Agents that run keep what they have until they end; the next ones get nothing until their owners store it again. A server that was refused starts now; one that runs needs a restart to use another key.\n",
			components.Plural(n, "credential"), key)
		return nil
	})
}
