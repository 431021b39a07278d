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
		left, err := st.CountCredentialProcesses(ctx)
		if err != nil {
			return err
		}
		if !f.Yes {
			s.say("%s of %s would be deleted, sealed with the key %s. Nothing was done. holdfast credential forget --yes deletes them.\n%s",
				components.Plural(n, "credential"), components.Plural(owners, "user"), key, haveValues(left))
			return nil
		}
		if n, err = st.ForgetCredentials(ctx); err != nil {
			return err
		}
		s.say("Deleted: %s. The key %s is forgotten. Agents get nothing until their owners store it again. A server that was refused starts now; one that runs needs a restart to use another key.\n%s",
			components.Plural(n, "credential"), key, haveValues(left))
		return nil
	})
}

// haveValues says what becomes of processes that have values which are forgotten.
func haveValues(n int) string {
	if n == 0 {
		return "No process of an agent has any of them.\n"
	}
	return components.Plural(n, "agent") + " that may still run with values: a server that starts after they are forgotten can't mask what these say. It ends each when its session goes on, leaves out what it said since, and what it was doing is then unknown. To let them end first, stop all servers with --stop-commands.\n"
}
