package fakegoogle_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
)

func refresher(ctx context.Context, url, refreshToken string) oauth2.TokenSource {
	config := oauth2.Config{
		ClientID: "id", ClientSecret: "secret",
		Endpoint: oauth2.Endpoint{TokenURL: url + "/token", AuthStyle: oauth2.AuthStyleInParams},
	}
	return config.TokenSource(ctx, &oauth2.Token{RefreshToken: refreshToken})
}

func TestRefreshTokenBuysAnAccessToken(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	server.AddMailbox(bob).Add(mail(1))
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, httpClient(t, ""))
	for _, refreshToken := range []string{bob, "1//" + bob} {
		source := oauth2.ReuseTokenSource(nil, refresher(ctx, url, refreshToken))
		service, err := gmail.NewService(ctx, option.WithHTTPClient(oauth2.NewClient(ctx, source)), option.WithEndpoint(url))
		if err != nil {
			t.Fatal(err)
		}
		got, err := service.Users.GetProfile("me").Do()
		if err != nil || got.EmailAddress != bob {
			t.Errorf("profile with %s = %v, %v; want bob's", refreshToken, got, err)
		}
		token, err := source.Token()
		if err != nil || !strings.HasPrefix(token.AccessToken, "ya29.") || token.Expiry.IsZero() {
			t.Errorf("token = %+v, %v", token, err)
		}
	}
	if r := server.Meter(); r.TokenCalls[bob] != 2 || r.User(bob).Calls != 2 {
		t.Errorf("%d token calls, %d metered; want 2 and 2", r.TokenCalls[bob], r.User(bob).Calls)
	}
}

func TestTokenRefusals(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, httpClient(t, ""))
	refuse := func(refreshToken string, status int, code string) {
		t.Helper()
		_, err := refresher(ctx, url, refreshToken).Token()
		failure, ok := errors.AsType[*oauth2.RetrieveError](err)
		if !ok || failure.ErrorCode != code || failure.Response.StatusCode != status {
			t.Errorf("token of %q: %v, want %d %s", refreshToken, err, status, code)
		}
	}
	refuse("nobody@example.com", 400, "invalid_grant")
	addFault(t, server, fault.Fault{Method: "token", User: ann, Reason: "invalid_grant", Count: 1})
	refuse(ann, 400, "invalid_grant")
	server.ClearFaults()
	addFault(t, server, fault.Fault{Method: "token", Reason: "unauthorized_client", Count: 1})
	refuse(ann, 401, "unauthorized_client")
	server.ClearFaults()
	addFault(t, server, fault.Fault{Method: "token", Status: 503, Count: 1})
	refuse(ann, 503, "")
	if _, err := refresher(ctx, url, ann).Token(); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestRevokedAccessTokenIs401(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, httpClient(t, ""))
	token, err := refresher(ctx, url, ann).Token()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, url, token.AccessToken).GetProfile("me").Do(); err != nil {
		t.Fatal(err)
	}
	post(t, url+"/_fake/mailbox", `{"user":"ann@example.com","revoke_access_tokens":true}`, 200)
	_, err = client(t, url, token.AccessToken).GetProfile("me").Do()
	wantError(t, err, 401, "Invalid Credentials", "authError", "UNAUTHENTICATED")
}

func TestServiceAccountNamesItsSubject(t *testing.T) {
	server, url := start(t, fakegoogle.Options{})
	server.AddMailbox(ann)
	server.AddMailbox(bob)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, httpClient(t, ""))
	config := jwt.Config{
		Email: "service@example.com", Subject: bob, TokenURL: url + "/token",
		PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
	token, err := config.TokenSource(ctx).Token()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client(t, url, token.AccessToken).GetProfile("me").Do(); err != nil || got.EmailAddress != bob {
		t.Errorf("profile = %v, %v; want bob's", got, err)
	}
	config.Subject = "gone@example.com"
	_, err = config.TokenSource(ctx).Token()
	failure, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || failure.Response.StatusCode != 400 || !strings.Contains(string(failure.Body), "invalid_grant") {
		t.Errorf("unknown subject: %v, want 400 invalid_grant", err)
	}
}
