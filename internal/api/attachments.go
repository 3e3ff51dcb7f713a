package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"headroom/jobs"
)

var exampleAttachment = jobs.Attachment{
	Part: "1", Filename: "minutes.pdf", MimeType: "application/pdf", Size: 20480, SHA256: strings.Repeat("0123456789abcdef", 4),
}

func (a *API) addAttachments() {
	add(a, operation{
		ID: "list-attachments", Method: http.MethodGet, Path: "/accounts/{email}/messages/{id}/attachments", Tag: tagMessages,
		Summary: "List the attachments of a message", Description: "Lists the attachments of a message that is stored in format full, all of them, by their parts.",
		Errors: []int{http.StatusNotFound}, Example: Page[jobs.Attachment]{Items: []jobs.Attachment{exampleAttachment}},
	}, func(ctx context.Context, in *MessagePath) (*Body[Page[jobs.Attachment]], error) {
		all, err := a.control.Attachments(ctx, in.Email, in.ID)
		return &Body[Page[jobs.Attachment]]{Page[jobs.Attachment]{Items: append([]jobs.Attachment{}, all...)}}, err
	})
	op := operation{
		ID: "download-attachment", Method: http.MethodGet, Path: "/accounts/{email}/messages/{id}/attachments/{part}", Tag: tagMessages,
		Summary: "Download an attachment", Description: "The content of an attachment, byte for byte. Its type is told by the list of attachments only, so that no browser shows what a stranger sent.",
		Errors: []int{http.StatusNotFound},
	}
	add(a, op, func(ctx context.Context, in *struct {
		MessagePath
		Part string `path:"part" example:"1" maxLength:"512" doc:"The attachment's part."`
	}) (*huma.StreamResponse, error) {
		found, content, err := a.control.OpenAttachment(ctx, in.Email, in.ID, in.Part)
		if err != nil {
			return nil, err
		}
		d := download{id: in.ID, kind: octets, name: escape(in.ID) + "-" + escape(found.Part), size: found.Size, sha256: found.SHA256}
		return &huma.StreamResponse{Body: func(ctx huma.Context) { a.send(ctx, d, content) }}, nil
	})
	a.huma.OpenAPI().Paths[op.Path].Get.Responses["200"] = &huma.Response{
		Description: "The content.",
		Content:     map[string]*huma.MediaType{octets: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}, Example: "%PDF-1.7 ..."}},
	}
}

const octets = "application/octet-stream"
