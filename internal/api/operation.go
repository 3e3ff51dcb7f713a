package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// An operation describes one operation. Example is the body of its answer, Request
// that of the request if it has one.
type operation struct {
	ID, Method, Path     string
	Tag                  string
	Summary, Description string
	Status               int   // 200 if 0
	Errors               []int // besides those that every operation has
	Example, Request     any
	Timeout              time.Duration // 10 s if 0
}

// add adds an operation. In and Out are the types that huma reads from a request
// and writes as an answer.
func add[In, Out any](a *API, op operation, do func(context.Context, *In) (*Out, error)) {
	ok := op.Status
	if ok == 0 {
		ok = http.StatusOK
	}
	if _, pages := any(new(In)).(huma.Resolver); pages {
		op.Errors = append(op.Errors, http.StatusBadRequest) // for its cursor
	}
	answers := map[string]*huma.Response{}
	huma.Register(a.huma, huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Tags: []string{op.Tag},
		Summary: op.Summary, Description: op.Description, DefaultStatus: ok,
		Errors: a.errors(op), Responses: answers, MaxBodyBytes: maxBody + 1,
	}, func(ctx context.Context, in *In) (*Out, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(op.Timeout, timeout))
		defer cancel()
		out, err := do(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, err, cmp.Or(op.Timeout, timeout))
		}
		return out, nil
	})
	a.addExamples(op, answers[strconv.Itoa(ok)])
}

// errors lists what may go wrong with an operation.
func (a *API) errors(op operation) []int {
	all := append([]int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, op.Errors...)
	if op.Method != http.MethodGet {
		all = append(all, http.StatusUnsupportedMediaType)
	}
	if op.Request != nil {
		all = append(all, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (a *API) addExamples(op operation, answer *huma.Response) {
	if media := answer.Content["application/json"]; media != nil {
		media.Example = op.Example
	}
	item := a.huma.OpenAPI().Paths[op.Path]
	for _, described := range []*huma.Operation{item.Post, item.Put, item.Patch} {
		if described != nil && described.OperationID == op.ID && described.RequestBody != nil {
			described.RequestBody.Content["application/json"].Example = op.Request
		}
	}
}

// also documents another status with the same body, or one without.
func (a *API) also(op operation, status int, description string, example any) {
	item := a.huma.OpenAPI().Paths[op.Path]
	first := item.Post.Responses[strconv.Itoa(op.Status)]
	item.Post.Responses[strconv.Itoa(status)] = &huma.Response{
		Description: description, Headers: first.Headers,
		Content: map[string]*huma.MediaType{"application/json": {Schema: first.Content["application/json"].Schema, Example: example}},
	}
}

// A Body is an answer that is a body and nothing else.
type Body[T any] struct{ Body T }
