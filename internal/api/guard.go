package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"

	"go.uber.org/zap"
)

// guard runs after the server's own guard, which has refused what the pages of
// others ask for. It marks the answers, and ends what panics.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := &sentWriter{ResponseWriter: w}
		defer a.recovered(sent, r)
		h := sent.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if takeBody(sent, r) {
			next.ServeHTTP(sent, r)
		}
	})
}

// takeBody reads a request's body before the operation does: what is left of one
// that an operation closes early could be taken for the next request.
func takeBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err == nil && len(body) <= maxBody:
		r.Body = io.NopCloser(bytes.NewReader(body))
		return true
	case err == nil:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes; ask for less at once", maxBody))
	default:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, "the body did not come in time or broke off; send the request again")
	}
	return false
}

func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// route lets the operations answer, and answers itself what is none. Writes that
// browsers send without asking first reach no operation: those are never JSON.
func (a *API) route() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := a.mux.Handler(r)
		if pattern != "" && writes(r) && !isJSON(r) {
			refuse(w, http.StatusUnsupportedMediaType, "the request is not marked as JSON; send it with the header Content-Type: application/json")
			return
		}
		if pattern != "" {
			a.mux.ServeHTTP(w, r)
			return
		}
		answer := &headerOnly{header: http.Header{}}
		handler.ServeHTTP(answer, r)
		if allow := answer.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is not possible here, but %s; see %s/openapi.json", r.Method, allow, Path))
			return
		}
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %s; see %s/openapi.json for what there is", r.URL.Path, Path))
	})
}

// headerOnly keeps the header of an answer, and drops the rest.
type headerOnly struct{ header http.Header }

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (h *headerOnly) WriteHeader(int)             {}

// sentWriter knows whether the answer has begun.
type sentWriter struct {
	http.ResponseWriter
	sent bool
}

func (w *sentWriter) WriteHeader(status int) {
	w.sent = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *sentWriter) Write(b []byte) (int, error) {
	w.sent = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *sentWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recovered ends what panicked. Answers that the client does not wait for end this
// way too.
func (a *API) recovered(w *sentWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	err, _ := p.(error)
	if r.Context().Err() == nil && !errors.Is(err, http.ErrAbortHandler) {
		a.log.Error("operation panicked", zap.String("path", r.URL.Path), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
	if w.sent {
		panic(http.ErrAbortHandler) // the client must not take what it has for the whole
	}
	refuse(w, http.StatusInternalServerError, "something unexpected went wrong; the log of the server says what")
}
