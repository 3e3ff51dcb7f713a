package api

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"headroom/jobs"
)

const tagMessages = "messages"

// downloadTime bounds how long the download of a message may take.
const downloadTime = 10 * time.Minute

var exampleMessage = jobs.Message{
	Account: "ann@example.com", ID: "18c2f0a1b2c3d4e5", ThreadID: "18c2f0a1b2c3d4e5", HistoryID: 987600,
	InternalDate: exampleTime, Labels: []string{"INBOX", "UNREAD"}, Size: 5120, SHA256: strings.Repeat("0123456789abcdef", 4),
	Subject: "Minutes of Friday", ParseStatus: jobs.Parsed,
}

// MessagePath names a message of an account in a path.
type MessagePath struct {
	AccountPath
	ID string `path:"id" example:"18c2f0a1b2c3d4e5" maxLength:"512" doc:"The message's id."`
}

func (a *API) addMessages() {
	type find struct {
		AccountPath
		Paging
		Label  string `query:"label" maxLength:"512" doc:"Only those with the label of this id."`
		After  moment `query:"after" doc:"Only those received at this moment or later; a date begins in UTC."`
		Before moment `query:"before" doc:"Only those received before this moment; a date begins in UTC."`
	}
	add(a, operation{
		ID: "list-messages", Method: http.MethodGet, Path: "/accounts/{email}/messages", Tag: tagMessages,
		Summary: "List stored messages", Description: "Lists the messages of an account that are stored by id, without their bodies.",
		Errors: []int{http.StatusNotFound}, Example: Page[jobs.Message]{Items: []jobs.Message{exampleMessage}},
	}, func(ctx context.Context, in *find) (*Body[Page[jobs.Message]], error) {
		f := jobs.MessageFilter{Label: in.Label, After: in.After.Time, Before: in.Before.Time}
		if err := f.Validate(); err != nil {
			return nil, invalid(err)
		}
		found, err := a.control.FindMessages(ctx, in.Email, f, in.after, in.Limit+1)
		return paged(in.Paging, found, func(m jobs.Message) string { return m.ID }), err
	})
	add(a, operation{
		ID: "get-message", Method: http.MethodGet, Path: "/accounts/{email}/messages/{id}", Tag: tagMessages,
		Summary: "Get what is stored of a message beside its body", Description: "An empty sha256 says that its body is not stored.",
		Errors: []int{http.StatusNotFound}, Example: exampleMessage,
	}, func(ctx context.Context, in *MessagePath) (*Body[jobs.Message], error) {
		m, err := a.control.Message(ctx, in.Email, in.ID)
		return &Body[jobs.Message]{m}, err
	})
	op := operation{
		ID: "download-message", Method: http.MethodGet, Path: "/accounts/{email}/messages/{id}/raw", Tag: tagMessages,
		Summary: "Download a message", Description: "The message as Gmail had it, byte for byte.",
		Errors: []int{http.StatusNotFound},
	}
	add(a, op, func(ctx context.Context, in *MessagePath) (*huma.StreamResponse, error) {
		m, raw, err := a.control.OpenMessage(ctx, in.Email, in.ID)
		if err != nil {
			return nil, err
		}
		d := download{id: m.ID, kind: "message/rfc822", name: escape(m.ID) + ".eml", size: m.Size, sha256: m.SHA256}
		return &huma.StreamResponse{Body: func(ctx huma.Context) { a.send(ctx, d, raw) }}, nil
	})
	a.huma.OpenAPI().Paths[op.Path].Get.Responses["200"] = &huma.Response{
		Description: "The message.",
		Content: map[string]*huma.MediaType{"message/rfc822": {
			Schema:  &huma.Schema{Type: huma.TypeString, Format: "binary"},
			Example: "From: bob@example.com\r\nTo: ann@example.com\r\nSubject: Minutes of Friday\r\n\r\n...\r\n",
		}},
	}
}

// A download is content that is sent as it is stored.
type download struct {
	id     string // of its message
	kind   string // its Content-Type
	name   string // of its file, escaped
	size   int64
	sha256 string
}

// send streams a download. One that breaks off ends the connection, so that nobody
// takes a part for the whole.
func (a *API) send(ctx huma.Context, d download, content io.ReadCloser) {
	defer content.Close()
	_, w := humago.Unwrap(ctx)
	// The server's own bound is for answers of a few kilobytes.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime)); err != nil {
		a.log.Debug("write deadline not set", zap.Error(err))
	}
	ctx.SetHeader("Content-Type", d.kind)
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	ctx.SetHeader("Content-Length", strconv.FormatInt(d.size, 10))
	ctx.SetHeader("Content-Disposition", `attachment; filename="`+d.name+`"`)
	ctx.SetHeader("ETag", `"`+d.sha256+`"`)
	ctx.SetStatus(http.StatusOK)
	if n, err := io.Copy(ctx.BodyWriter(), content); err != nil || n != d.size {
		if err := ctx.Context().Err(); err == nil {
			a.log.Warn("download broken off", zap.String("message", d.id), zap.Int64("sent", n), zap.Int64("size", d.size), zap.Error(err))
		}
		panic(http.ErrAbortHandler)
	}
}
