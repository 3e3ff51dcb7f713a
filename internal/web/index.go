package web

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"time"

	"headroom/jobs"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"
)

// indexJobs is how many jobs the index shows, the newest first.
const indexJobs = 50

// pageTimeout bounds what the index page may ask of Redis and the store.
const pageTimeout = 3 * time.Second

//go:embed index.html
var indexSource string

var indexPage = template.Must(template.New("index").Funcs(template.FuncMap{
	"bytes": func(n int64) string { return humanize.IBytes(uint64(max(0, n))) },
	"count": humanize.Comma,
	"age":   func(t time.Time) string { return humanize.Time(t) },
}).Parse(indexSource))

// indexData is what index.html shows.
type indexData struct {
	Version string
	Ready   readiness
	Lanes   []laneRow
	NoLanes string // why there are none
	Jobs    []jobs.Job
	NoJobs  string
	Total   int
}

type laneRow struct {
	Name string
	queueSize
}

func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	var page bytes.Buffer
	if err := indexPage.Execute(&page, s.indexData(ctx)); err != nil {
		s.opts.Log.Error("index page", zap.Error(err))
		http.Error(w, "the page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = page.WriteTo(w) // the reader has gone: nobody left to tell
}

// indexData gathers what can be had: the page is wanted most when something is
// wrong.
func (s *Server) indexData(ctx context.Context) indexData {
	d := indexData{Version: s.opts.Version, Ready: s.check(ctx)}
	names := make([]string, len(s.opts.Lanes))
	for i, l := range s.opts.Lanes {
		names[i] = l.Queue
	}
	sizes, err := readQueues(ctx, s.opts.Redis, names)
	if err != nil {
		d.NoLanes = err.Error()
	}
	for i, size := range sizes {
		d.Lanes = append(d.Lanes, laneRow{s.opts.Lanes[i].Name, size})
	}
	all, err := s.opts.JobsFunc(ctx)
	if err != nil {
		d.NoJobs = err.Error()
	}
	d.Total = len(all)
	d.Jobs = all[max(0, len(all)-indexJobs):]
	slices.Reverse(d.Jobs)
	return d
}
