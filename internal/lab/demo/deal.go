package demo

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/gmail"
)

// dealtMessage is one message as it was put into a mailbox of the fake.
type dealtMessage struct {
	account, id string
	sha256      string // of the bytes in the input
}

// deal deals the mail among mailboxes of the fake: generated mail if none is named.
func deal(fake *fakegoogle.Server, mail string) (map[string]dealtMessage, error) {
	boxes := make([]*gmail.Mailbox, len(accounts))
	for i, email := range accounts {
		boxes[i] = fake.AddMailbox(email)
	}
	dealt := map[string]dealtMessage{}
	put := func(i int, raw []byte) {
		box := boxes[i%len(boxes)]
		sum := sha256.Sum256(raw)
		m := dealtMessage{account: box.Email(), id: box.Add(raw), sha256: hex.EncodeToString(sum[:])}
		dealt[m.account+" "+m.id] = m
	}
	if mail == "" {
		i := 0
		for raw := range gmail.Generate(1, messagesPerAccount*len(accounts)) {
			put(i, raw)
			i++
		}
		return dealt, nil
	}
	messages, err := gmail.ReadMailbox(mail)
	if err != nil {
		return nil, fmt.Errorf("%w; give --mbox an mbox file, or a folder of mbox and eml files", err)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("no message in %s; give an mbox file, or a folder of mbox and eml files", mail)
	}
	for i, raw := range messages {
		put(i, raw)
	}
	return dealt, nil
}

// newRunID names a run, so that runs that share a Redis do not meet.
func newRunID() (string, error) {
	b := make([]byte, 4)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("name the run: %w", err)
	}
	return hex.EncodeToString(b), nil
}
