package fakegoogle

import "net/http"

// A channel is where changes are told of.
type channel struct{}

type channels struct{}

func newChannels() *channels { return &channels{} }

func (n *channels) enqueue(*channel) {}

func (d *diary) tell(*Calendar) {}

func (s *Server) watch(*http.Request, *diary, *Calendar) (any, *apiError) {
	return nil, calendarNotFound()
}

func (s *Server) stopChannel(*http.Request, *diary) (any, *apiError) { return nil, calendarNotFound() }

type channelResource struct {
	Kind        string `json:"kind,omitempty"`
	ID          string `json:"id,omitempty"`
	ResourceID  string `json:"resourceId,omitempty"`
	ResourceURI string `json:"resourceUri,omitempty"`
	Token       string `json:"token,omitempty"`
	Expiration  int64  `json:"expiration,omitempty,string"`
	Type        string `json:"type,omitempty"`
	Address     string `json:"address,omitempty"`
}
