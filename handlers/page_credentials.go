package handlers

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/vault"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// The value of a credential comes in by one field of one form, goes to the vault, and
// is in no page, log or error: also a form that is refused doesn't give it back (OWN-3).

// credentialRoutes are those of a server that can store credentials.
func (s *Server) credentialRoutes() []route {
	if s.opts.Vault == nil {
		return nil
	}
	return []route{
		{get, "/settings/credentials", owner, read, s.showCredentials},
		{post, "/settings/credentials", owner, all, s.submitCredential},
		{get, "/settings/credentials/:id/deletion", owner, read, s.showCredentialDeletion},
		{post, "/settings/credentials/:id/deletion", owner, all, s.submitCredentialDeletion},
	}
}

// showCredentials: GET /settings/credentials?name=&agent=, what agents get besides. The
// parameters fill the form, for another value of what is there.
func (s *Server) showCredentials(c *fiber.Ctx) error {
	p := pages.Credentials{Name: journal.Cut(strings.TrimSpace(c.Query("name")), 100), Agent: journal.Cut(c.Query("agent"), 60)}
	return s.drawCredentials(c, http.StatusOK, p)
}

func (s *Server) drawCredentials(c *fiber.Ctx, status int, p pages.Credentials) error {
	problems := p.Problems
	list, err := s.store.Credentials(c.UserContext(), current(c).User.ID)
	if err != nil {
		return err
	}
	agents, err := s.agents(c.UserContext())
	if err != nil {
		return err
	}
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	if p.Frame, err = s.frame(c, "Credentials", "settings", now); err != nil {
		return err
	}
	p.Problems, p.Key, p.Where = problems, newKey(), s.opts.Vault.Where()
	for _, one := range list {
		opens, err := s.opts.Vault.Opens(c.UserContext(), []string{one.ID})
		if err != nil {
			return err
		}
		p.Items = append(p.Items, pages.Credential{Spoilt: !opens, ID: one.ID, Name: one.Name, Agent: one.Agent, CreatedAt: one.CreatedAt, UpdatedAt: one.UpdatedAt, UsedAt: one.UsedAt.Int64, Version: one.Version})
	}
	for _, a := range agents {
		if a.Name != runbook { // its commands get none
			p.Agents = append(p.Agents, a.Name)
		}
	}
	if status == http.StatusOK {
		said, err := s.credentialNotice(c, list)
		if err != nil {
			return err
		}
		p.Notice = keepNotice(c, said)
	}
	return draw(c, status, pages.CredentialsPage(p))
}

// credentialNotice says what a form has done, if it is so.
func (s *Server) credentialNotice(c *fiber.Ctx, list []store.Credential) (components.Phrase, error) {
	id := c.Query("id")
	at := slices.IndexFunc(list, func(one store.Credential) bool { return one.ID == id })
	switch n := notice(c.Query("notice")); {
	case n == noticeStored && at >= 0 && list[at].Version > 1:
		return components.Say(components.Code(list[at].Name), " is stored in place of the value that was there. Agents get it with their next turn."), nil
	case n == noticeStored && at >= 0:
		return components.Say(components.Code(list[at].Name), " is stored. Agents get it with their next turn."), nil
	case n == noticeDeleted && at < 0:
		was, err := s.store.CredentialDeleted(c.UserContext(), current(c).User.ID, id)
		if err != nil || !was {
			return nil, err
		}
		return components.Say("The credential is deleted. Agents don’t get it any more from their next turn on."), nil
	}
	return nil, nil
}

// submitCredential: POST /settings/credentials.
func (s *Server) submitCredential(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	key, err := f.key()
	if err != nil {
		return err
	}
	if err := s.limit(c); err != nil {
		return err
	}
	n := vault.New{Name: f.word("name"), Agent: f.word("agent"), Value: strings.Trim(f.text("value"), " "), Key: key}
	p := pages.Credentials{Name: n.Name, Agent: n.Agent}
	if err := s.checkCredentialAgent(c, n.Agent); err != nil {
		return s.refuseCredential(c, p, "agent", err)
	}
	id, err := s.opts.Vault.Put(c.UserContext(), current(c).User.ID, n)
	switch {
	case journal.Is(err, journal.Unprocessable) && slugOf(err) == "bad-credential-value":
		return s.refuseCredential(c, p, "value", err)
	case journal.Is(err, journal.Unprocessable):
		return s.refuseCredential(c, p, "name", err)
	case err != nil:
		return err
	}
	return seeOther(c, "/settings/credentials?notice="+string(noticeStored)+"&id="+id)
}

// refuseCredential draws the form again with what was typed, but for the value.
func (s *Server) refuseCredential(c *fiber.Ctx, p pages.Credentials, field string, err error) error {
	p.Refused = true
	p.Problems = []components.Problem{{Field: field, Text: messageOf(err)}}
	return s.drawCredentials(c, http.StatusUnprocessableEntity, p)
}

// checkCredentialAgent refuses an agent that no server offers and none of the owner's
// credentials is for.
func (s *Server) checkCredentialAgent(c *fiber.Ctx, name string) error {
	if name == "" {
		return nil
	}
	agents, err := s.agents(c.UserContext())
	if err != nil {
		return err
	}
	list, err := s.store.Credentials(c.UserContext(), current(c).User.ID)
	if err != nil {
		return err
	}
	offered := slices.ContainsFunc(agents, func(a store.Agent) bool { return a.Name == name && a.Name != runbook })
	if !offered && !slices.ContainsFunc(list, func(one store.Credential) bool { return one.Agent == name }) {
		return journal.Errorf(journal.Unprocessable, "No server here offers the agent %q to credentials. Choose another one, or every agent. Nothing was stored.", journal.Cut(name, 60)).Typed("unknown-agent")
	}
	return nil
}

// showCredentialDeletion: GET /settings/credentials/:id/deletion asks before it is done.
func (s *Server) showCredentialDeletion(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "crd")
	if err != nil {
		return err
	}
	one, err := s.store.Credential(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	p := pages.CredentialDeletion{Key: newKey(), One: pages.Credential{ID: one.ID, Name: one.Name, Agent: one.Agent}}
	if p.Frame, err = s.frame(c, "Delete "+one.Name, "settings", now); err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.CredentialDeletionPage(p))
}

// submitCredentialDeletion: POST /settings/credentials/:id/deletion.
func (s *Server) submitCredentialDeletion(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "crd")
	if err != nil {
		return err
	}
	if err := s.limit(c); err != nil {
		return err
	}
	if _, err := s.store.DeleteCredential(c.UserContext(), current(c).User.ID, id); err != nil {
		return err
	}
	return seeOther(c, "/settings/credentials?notice="+string(noticeDeleted)+"&id="+id)
}
