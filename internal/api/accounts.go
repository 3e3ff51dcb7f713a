package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"headroom/internal/control"
	"headroom/jobs"
)

const tagAccounts = "accounts"

// exampleTime is the present of all examples.
var exampleTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

var exampleAccount = jobs.Account{Email: "ann@example.com", Project: "my-project", Tenant: "acme", Class: "urgent", CreatedAt: exampleTime}

// AccountPath names an account in a path.
type AccountPath struct {
	Email string `path:"email" example:"ann@example.com" maxLength:"254" doc:"The account's address."`
}

// Assignment is the tenant and the priority class that an account is to have. What
// is nil stays.
type Assignment struct {
	Tenant *string `json:"tenant,omitempty" doc:"Whose share of the quota the account has; if empty, the domain's of its address."`
	Class  *string `json:"class,omitempty" doc:"Priority class, by its name in the settings; if empty, the tenant's."`
}

func (a *API) addAccounts() {
	add(a, operation{
		ID: "list-accounts", Method: http.MethodGet, Path: "/accounts", Tag: tagAccounts,
		Summary: "List all accounts", Description: "Lists the Google users whose data is fetched, by address.",
		Example: Page[jobs.Account]{Items: []jobs.Account{exampleAccount}},
	}, func(ctx context.Context, in *Paging) (*Body[Page[jobs.Account]], error) {
		all, err := a.control.Accounts(ctx)
		return pagedOf(*in, all, func(a jobs.Account) string { return a.Email }), err
	})
	add(a, operation{
		ID: "get-account", Method: http.MethodGet, Path: "/accounts/{email}", Tag: tagAccounts,
		Summary: "Get one account", Description: "The case of A to Z in the address does not matter.",
		Errors: []int{http.StatusNotFound}, Example: exampleAccount,
	}, func(ctx context.Context, in *AccountPath) (*Body[jobs.Account], error) {
		account, err := a.control.Account(ctx, in.Email)
		return &Body[jobs.Account]{account}, err
	})
	type newAccount struct {
		Email   string `json:"email" minLength:"1" maxLength:"254" doc:"The user's address."`
		Project string `json:"project" minLength:"1" doc:"The Google Cloud project, by its name in the settings, in which the user's quota is counted."`
		Assignment
	}
	assigned := Assignment{&exampleAccount.Tenant, &exampleAccount.Class}
	add(a, operation{
		ID: "add-account", Method: http.MethodPost, Path: "/accounts", Tag: tagAccounts,
		Summary: "Add an account", Description: "Adds a Google user. Nothing is fetched before a backfill is started.",
		Status: http.StatusCreated, Errors: []int{http.StatusConflict},
		Request: newAccount{exampleAccount.Email, exampleAccount.Project, assigned}, Example: exampleAccount,
	}, func(ctx context.Context, in *Body[newAccount]) (*located[jobs.Account], error) {
		email, err := jobs.ParseAddress(in.Body.Email)
		if err != nil {
			return nil, invalid(err)
		}
		account, err := a.control.AddAccount(ctx, email, in.Body.Project, control.Assignment(in.Body.Assignment))
		return at(http.StatusCreated, account, "accounts", account.Email), err
	})
	add(a, operation{
		ID: "assign-account", Method: http.MethodPatch, Path: "/accounts/{email}", Tag: tagAccounts,
		Summary:     "Change the tenant or the priority class of an account",
		Description: "Changes what the body names and leaves the rest. It holds within seconds, for backfills that are under way too.",
		Errors:      []int{http.StatusNotFound}, Request: assigned, Example: exampleAccount,
	}, func(ctx context.Context, in *struct {
		AccountPath
		Body Assignment
	}) (*Body[jobs.Account], error) {
		if in.Body.Tenant == nil && in.Body.Class == nil {
			return nil, invalid(errors.New("the body changes nothing; name tenant or class"))
		}
		account, err := a.control.AssignAccount(ctx, in.Email, control.Assignment(in.Body))
		return &Body[jobs.Account]{account}, err
	})
}

// located is an answer with the address of its body.
type located[T any] struct {
	Status   int
	Location string `header:"Location" doc:"Where this can be had again."`
	Body     T
}

func at[T any](status int, body T, path ...string) *located[T] {
	for i, p := range path {
		path[i] = escape(p)
	}
	return &located[T]{status, Path + "/" + strings.Join(path, "/"), body}
}
