package fakegoogle

import "fmt"

// AddAlias gives a mailbox another address, by which it can be asked for. It names
// itself by its own, and its meter is one.
func (s *Server) AddAlias(email, alias string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	box := s.mailboxes[mailboxKey(email)]
	if box == nil {
		return fmt.Errorf("no mailbox %s", email)
	}
	if other := s.mailboxes[mailboxKey(alias)]; other != nil && other != box || mailboxKey(alias) == "" {
		return fmt.Errorf("alias %q is the address of another mailbox, or none", alias)
	}
	s.mailboxes[mailboxKey(alias)] = box
	return nil
}
