package google

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/oauth2"
	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/jobs"
	"headroom/quota"
)

// Options configures a [Google]. Ledger and Projects are required.
type Options struct {
	// Endpoint is the URL of a Gmail and Calendar to use instead of Google's own.
	Endpoint string
	Ledger   *quota.Ledger
	Projects map[string]Project // by the name of the Google Cloud project

	// Budget bounds the memory that message bodies take, in bytes over the
	// process; [DefaultBudget] if zero. One message may always exceed it.
	Budget int64

	Log        *zap.Logger           // none if nil
	Registerer prometheus.Registerer // metrics are not registered if nil
	Base       http.RoundTripper     // sends requests; if nil, a transport with timeouts
}

// Project is what is needed to act for the users of a Google Cloud project.
type Project struct {
	// Credentials is the path of the JSON key of a service account with
	// domain-wide delegation. It may be empty when Options.Endpoint is set:
	// requests then carry the account's address as their token.
	Credentials string
}

// userAgent must contain "gzip" for Google to compress its answers.
const userAgent = "headroom/1 (gzip)"

// maxAccounts bounds the number of clients that are kept. Making a dropped client
// again costs a token fetch.
const maxAccounts = 10_000

// A Google opens mailboxes and calendars. It is safe for concurrent use.
type Google struct {
	opts    Options
	keys    map[string]*keyFile // by project; nil: the address is the token
	base    http.RoundTripper
	charged *quota.Transport // shared by all accounts
	budget  *budget
	gates   *gates
	metrics *metrics

	mu       sync.Mutex
	accounts map[accountKey]*list.Element
	recent   list.List // of *account, the last used first
}

type accountKey struct{ project, email string }

// account holds an account's clients. Each API has its own tokens, because a token for
// both scopes is refused if an administrator has granted only one.
type account struct {
	key      accountKey
	service  *gmail.Service
	calendar *calendar.Service
	mail     *http.Client // of service
	client   *http.Client // of calendar
}

// New reads the projects' credentials. It makes no call.
func New(o Options) (*Google, error) {
	if o.Ledger == nil {
		return nil, errors.New("google: no ledger")
	}
	if o.Budget < 0 {
		return nil, fmt.Errorf("google: budget of %d bytes is negative", o.Budget)
	}
	host := ""
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, errors.New("google: the endpoint is no http or https URL") // it may hold a password
		}
		host = u.Scheme + "://" + u.Host
	}
	o.Budget = cmp.Or(o.Budget, DefaultBudget)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.Log = o.Log.Named("google")
	g := &Google{opts: o, keys: map[string]*keyFile{}, base: o.Base,
		metrics: newMetrics(o.Registerer), accounts: map[accountKey]*list.Element{}}
	for _, name := range slices.Sorted(maps.Keys(o.Projects)) {
		path := o.Projects[name].Credentials
		if path == "" && o.Endpoint == "" {
			return nil, fmt.Errorf("google: project %s has no credentials; name the key file of a service account with domain-wide delegation", name)
		}
		if path == "" {
			g.keys[name] = nil
			continue
		}
		key, err := newKeyFile(path, o.Log)
		if err != nil {
			return nil, fmt.Errorf("google: project %s: %w", name, err)
		}
		g.keys[name] = key
	}
	g.gates = &gates{log: o.Log, metrics: g.metrics, all: map[gateKey]*gate{}}
	if g.base == nil {
		g.base = newBase()
	}
	g.budget = newBudget(o.Budget, g.metrics)
	g.charged = &quota.Transport{Base: bodyMeter{g.base}, Limiter: o.Ledger, Scale: o.Ledger.Scale()}
	if o.Endpoint != "" {
		o.Log.Info("not using Google's own endpoint", zap.String("endpoint", host))
	}
	return g, nil
}

// CheckKey reports what is wrong with the key file of a service account.
func CheckKey(path string) error {
	_, err := readKey(path)
	return err
}

// newBase returns a transport for many accounts on few hosts. The context of a call
// bounds the call as a whole.
func newBase() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// Close closes idle connections. Calls in flight go on.
func (g *Google) Close() {
	if c, ok := g.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Mailbox opens an account's mailbox for calls in a lane. A call that the ledger
// refuses waits for up to maxWait before it returns the refusal. Mailbox itself makes
// no call. The error is quota.ErrUnknownProject if the options lack the account's
// project.
//
// The mailbox's calls return a *quota.DeniedError or another error of the ledger, the
// error of the call's context when it has ended, or a *jobs.CallError that classifies
// Google's answer, or its absence.
func (g *Google) Mailbox(ctx context.Context, a jobs.Account, lane quota.Lane, maxWait time.Duration) (*Mailbox, error) {
	if !lane.Valid() {
		return nil, fmt.Errorf("mailbox of %s: unknown lane %q", a.Email, lane)
	}
	if a.Email == "" {
		return nil, errors.New("mailbox of an account without an address")
	}
	clients, err := g.account(ctx, accountKey{project: a.Project, email: a.Email})
	if err != nil {
		return nil, fmt.Errorf("mailbox of %s: %w", a.Email, err)
	}
	caller := quota.Caller{Project: a.Project, User: a.QuotaUser(), Lane: lane, MaxWait: maxWait}
	return &Mailbox{google: g, service: clients.service, client: clients.mail, caller: caller}, nil
}

// account returns the account's clients: the same ones for all calls, so that they
// share a token.
func (g *Google) account(ctx context.Context, key accountKey) (*account, error) {
	credentials, known := g.keys[key.project]
	if !known {
		return nil, fmt.Errorf("%w %q", quota.ErrUnknownProject, key.project)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, ok := g.accounts[key]; ok {
		g.recent.MoveToFront(e)
		return e.Value.(*account), nil
	}
	a := &account{key: key}
	var err error
	if a.service, a.mail, err = g.newService(ctx, key, credentials); err != nil {
		return nil, err
	}
	if a.calendar, a.client, err = g.newCalendar(ctx, key, credentials); err != nil {
		return nil, err
	}
	g.accounts[key] = g.recent.PushFront(a)
	if g.recent.Len() > maxAccounts {
		oldest := g.recent.Back()
		g.recent.Remove(oldest)
		delete(g.accounts, oldest.Value.(*account).key)
	}
	return a, nil
}

func (g *Google) newService(ctx context.Context, key accountKey, credentials *keyFile) (*gmail.Service, *http.Client, error) {
	client := g.client(key, credentials, Scope)
	options := []option.ClientOption{option.WithHTTPClient(client)}
	if g.opts.Endpoint != "" {
		options = append(options, option.WithEndpoint(g.opts.Endpoint))
	}
	service, err := gmail.NewService(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("make a Gmail client: %w", err)
	}
	service.UserAgent = userAgent
	return service, client, nil
}

// client returns an account's HTTP client for one API.
func (g *Google) client(key accountKey, credentials *keyFile, scope string) *http.Client {
	fetch := func(context.Context) (*oauth2.Token, error) { return &oauth2.Token{AccessToken: key.email}, nil }
	if credentials != nil {
		fetch = g.gates.guard(key, scope, delegated(credentials, scope, key.email, g.base, g.metrics))
	}
	tokens := newTokenSource(fetch)
	tokens.scope = scope
	return &http.Client{
		Transport: &authTransport{tokens: tokens, next: g.charged},
		// Google's API does not redirect. Another server must not get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
