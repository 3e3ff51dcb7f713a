package calendar

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// longestChannel is how long a channel lasts that asks for more or for nothing;
// Google's own default is unverified.
const longestChannel = 7 * 24 * time.Hour

// A channelResource is a channel as the API takes and gives it.
type channelResource struct {
	Kind        string            `json:"kind,omitempty"`
	ID          string            `json:"id,omitempty"`
	ResourceID  string            `json:"resourceId,omitempty"`
	ResourceURI string            `json:"resourceUri,omitempty"`
	Token       string            `json:"token,omitempty"`
	Expiration  int64             `json:"expiration,omitempty,string"` // ms since 1970
	Type        string            `json:"type,omitempty"`
	Address     string            `json:"address,omitempty"`
	Params      map[string]string `json:"params,omitempty"` // ttl, in seconds
}

// A channel is where changes of a calendar, or of the list of an account, are
// notified.
type channel struct {
	id, token, address      string
	resourceID, resourceURI string
	account                 string
	calendar                string // "" for the list
	expires                 time.Time
	number                  int64 // of the message sent last; the lock of channels guards it
}

// tell notifies the channels of a calendar, or with nil those of the list, of a
// change. The caller holds the lock.
func (d *Account) tell(c *Calendar) {
	if d.channels == nil {
		return
	}
	id := ""
	if c != nil {
		id = c.id
	}
	d.channels.changed(d.email, id)
}

// watch serves calendar.events.watch, and calendar.calendarList.watch where c is
// nil.
func (d *Account) watch(r *http.Request, c *Calendar) (any, *wire.Error) {
	var asked channelResource
	if bad := readBody(r, &asked); bad != nil {
		return nil, bad
	}
	address, err := url.Parse(asked.Address)
	switch {
	case asked.ID == "" || len(asked.ID) > 64:
		return nil, badRequest("required", "entity.id is required, and has at most 64 characters", "")
	case asked.Type != "web_hook" && asked.Type != "webhook":
		return nil, badRequest("invalidValue", "Unknown channel type: "+asked.Type, "")
	case err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https":
		return nil, badRequest("push.webhookUrlNotHttps", "WebHook callback must be HTTPS: "+asked.Address, "")
	case len(asked.Token) > 256:
		return nil, badRequest("invalidValue", "entity.token has more than 256 characters", "")
	}
	calendar, uri := "", "https://www.googleapis.com/calendar/v3/users/me/calendarList?alt=json"
	if c != nil {
		calendar = c.id
		uri = "https://www.googleapis.com/calendar/v3/calendars/" + url.PathEscape(c.id) + "/events?alt=json"
	}
	opened := &channel{
		id: asked.ID, token: asked.Token, address: asked.Address, account: d.email, calendar: calendar,
		resourceID: madeID(d.email, calendar, "resource"), resourceURI: uri,
		expires: time.Now().Add(d.channels.life(asked)).Truncate(time.Second),
	}
	if !d.channels.open(opened) {
		return nil, badRequest("channelIdNotUnique", "Channel id "+asked.ID+" not unique", "")
	}
	return channelResource{
		Kind: "api#channel", ID: opened.id, ResourceID: opened.resourceID, ResourceURI: opened.resourceURI,
		Token: opened.token, Expiration: opened.expires.UnixMilli(),
	}, nil
}

// life is how long a channel lasts: as long as is asked for, but not longer than
// any may.
func (n *Channels) life(asked channelResource) time.Duration {
	n.mu.Lock()
	most := cmp.Or(time.Duration(n.profile.LifeMS)*time.Millisecond, longestChannel)
	n.mu.Unlock()
	wanted := most
	if asked.Expiration > 0 {
		wanted = time.Until(time.UnixMilli(asked.Expiration))
	} else if seconds, err := strconv.ParseInt(asked.Params["ttl"], 10, 32); err == nil {
		wanted = time.Duration(seconds) * time.Second
	}
	return min(wanted, most)
}

// stopChannel serves calendar.channels.stop.
func (d *Account) stopChannel(r *http.Request) (any, *wire.Error) {
	var asked channelResource
	if bad := readBody(r, &asked); bad != nil {
		return nil, bad
	}
	if !d.channels.close(d.email, asked.ID, asked.ResourceID) {
		return nil, wire.NewError(http.StatusNotFound, "global", "notFound", "Channel '"+asked.ID+"' not found for project '"+wire.ProjectNumber+"'")
	}
	return nil, nil
}
