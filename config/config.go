// Package config holds the settings of Headroom: which there are, where they come from,
// and whether they are valid. It decides nothing about their use.
//
// A setting is taken from the last of these sources that names it: the defaults of
// [Default], the settings file (headroom.yaml), the environment (HEADROOM_*), the
// command line (--set). docs/configuration.md lists every key, and a test compares that
// page with the types here.
package config

import (
	"maps"
	"path/filepath"
	"time"

	"headroom/quota"
	"headroom/quota/price"
)

// Config is all settings. The zero value is not valid; start from [Default] or
// [Load]. Copies share the maps of Google.Projects.
type Config struct {
	Google    Google    `yaml:"google"`
	Redis     Redis     `yaml:"redis"`
	Quota     Quota     `yaml:"quota"`
	Store     Store     `yaml:"store"`
	Worker    Worker    `yaml:"worker"`
	Scheduler Scheduler `yaml:"scheduler"`
	Fairness  Fairness  `yaml:"fairness"`
	Sync      Sync      `yaml:"sync"`
	Schedules Schedules `yaml:"schedules"`
	Push      Push      `yaml:"push"`
	Web       Web       `yaml:"web"`
	Metrics   Metrics   `yaml:"metrics"`
	Log       Log       `yaml:"log"`
	Scale     int       `yaml:"scale"` // quota time runs this many times faster; 1 outside tests
}

// Google names the endpoint of Google's APIs and the Google Cloud projects.
type Google struct {
	Endpoint URL                `yaml:"endpoint"` // base URL of the APIs; "": Google's own
	Projects map[string]Project `yaml:"projects"`
}

// Project is one Google Cloud project, whose quota all of its accounts share.
type Project struct {
	Prices      []string          `yaml:"prices"`      // price lists, at most one for each API
	Credentials string            `yaml:"credentials"` // path of a service account's key; "": none
	Limits      map[string]Limits `yaml:"limits"`      // by price list
	Costs       map[string]Costs  `yaml:"costs"`       // by price list
	Budget      map[string]Budget `yaml:"budget"`      // by price list
	Mode        quota.Mode        `yaml:"mode"`        // of the lanes
	Lanes       Lanes             `yaml:"lanes"`
}

// Limits replaces limits of a price list, in units. Zero keeps the list's own.
type Limits struct {
	UserMinute    int64 `yaml:"user_minute"`
	ProjectMinute int64 `yaml:"project_minute"`
}

// Costs replaces what methods of a price list cost, by method id.
type Costs map[string]Cost

// Budget bounds what is spent in a day of Google's, in units of a price list.
type Budget struct {
	DailyUnits *int64      `yaml:"daily_units"` // 0: no budget; nil: above what Google bills, if the list says
	Hard       bool        `yaml:"hard"`        // binds interactive calls too
	AtEnd      price.AtEnd `yaml:"at_end"`      // "": pause
	Ahead      *float64    `yaml:"ahead"`       // share by which backfills may be ahead of an even spending; nil: DefaultAhead
}

// DefaultAhead is the share of a day's budget by which backfills may be ahead of
// spending it evenly.
const DefaultAhead = 0.25

// Lanes holds the settings that replace those of the mode, for each lane.
type Lanes struct {
	Interactive Lane         `yaml:"interactive"`
	Sync        Lane         `yaml:"sync"`
	Backfill    BackfillLane `yaml:"backfill"`
}

// Lane sets how far a lane may fill a limit, how fast, and up to how many calls in
// flight it may add one. Nil takes the mode's value.
type Lane struct {
	Ceiling  *float64 `yaml:"ceiling"`   // share of the limit, above 0 and at most 1
	Pace     *float64 `yaml:"pace"`      // multiple of ceiling/60 per second; 0: not paced
	InFlight *int     `yaml:"in_flight"` // of one Google user, in all processes and lanes
}

// BackfillLane is a [Lane] whose ceiling may give way to interactive calls.
type BackfillLane struct {
	Ceiling  *float64 `yaml:"ceiling"`
	Floor    *float64 `yaml:"floor"` // how far the ceiling gives way to interactive calls, as a share of the limit; 0: not at all
	Pace     *float64 `yaml:"pace"`
	InFlight *int     `yaml:"in_flight"`
}

// Redis names the server, and the prefixes of our keys.
type Redis struct {
	URL          URL    `yaml:"url"`
	QueuePrefix  string `yaml:"queue_prefix"`  // of the names of queues
	LedgerPrefix string `yaml:"ledger_prefix"` // of the ledger's keys
}

// Quota sets what applies while Redis does not answer.
type Quota struct {
	FailOpen float64 `yaml:"fail_open"` // share of each limit for this process' interactive calls; 0: none
}

// Store names where jobs, records and message bodies are stored.
type Store struct {
	Path  string `yaml:"path"`  // of the SQLite file
	Blobs string `yaml:"blobs"` // folder of the raw messages; "": blobs beside Path
}

// Worker bounds the work of one process.
type Worker struct {
	Concurrency          int           `yaml:"concurrency"` // slices at once; they mostly wait for quota
	InFlight             int           `yaml:"in_flight"`   // requests at once for one account
	Slice                time.Duration `yaml:"slice"`       // length of one slice of work
	Lease                time.Duration `yaml:"lease"`       // a worker that does not renew for this long loses its job
	MessageBytesInFlight Bytes         `yaml:"message_bytes_in_flight"`
	MaxMessageBytes      Bytes         `yaml:"max_message_bytes"` // bodies of larger messages are not fetched; 0: no limit
}

// Scheduler sets when the scheduler looks for lost work.
type Scheduler struct {
	Tick string `yaml:"tick"` // cron specification, with seconds if it has six fields
}

// Sync sets how often the history of a backfilled mailbox is read.
type Sync struct {
	Interval time.Duration `yaml:"interval"` // between two syncs of a mailbox; 0: only when asked for
}

// Web is the HTTP server of a process with the role web.
type Web struct {
	Listen string   `yaml:"listen"` // host:port
	Hosts  []string `yaml:"hosts"`  // accepted host names, besides localhost, IP addresses and names without a dot
}

// Metrics is the HTTP server of a process without the role web. It serves metrics and
// health only.
type Metrics struct {
	Listen string `yaml:"listen"` // host:port; "": the process does not listen
}

// Log sets what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // auto, console or json
}

// DefaultPath is the settings file, unless the command line names another.
const DefaultPath = "headroom.yaml"

// DefaultPrices are the price lists of a project that names none: the most expensive
// lists that may apply, so that the ledger never counts less than Google.
var DefaultPrices = []string{"gmail-2026-10", "calendar-2026-05"}

// Default returns the settings of an installation that sets nothing, without settings
// that are derived from others: see [Config.Completed]. It has no Google Cloud project,
// which only the worker needs.
func Default() Config {
	return Config{
		Redis: Redis{URL: "redis://127.0.0.1:6379/0"},
		Quota: Quota{FailOpen: 0.1},
		Store: Store{Path: "headroom-data/headroom.db"},
		Worker: Worker{
			Concurrency:          200,
			InFlight:             7,
			Slice:                5 * time.Second,
			Lease:                5 * time.Second,
			MessageBytesInFlight: 256 << 20,
		},
		Scheduler: Scheduler{Tick: "@every 2s"},
		Sync:      Sync{Interval: 5 * time.Minute},
		Web:       Web{Listen: "127.0.0.1:8080"},
		Log:       Log{Level: "info", Format: "auto"},
		Scale:     1,
	}
}

// complete derives settings from others, and fills in the projects' defaults.
func (c *Config) complete() {
	if c.Store.Blobs == "" && c.Store.Path != "" {
		c.Store.Blobs = filepath.Join(filepath.Dir(c.Store.Path), "blobs")
	}
	for name, p := range c.Google.Projects {
		if p.Prices == nil {
			p.Prices = append([]string(nil), DefaultPrices...)
		}
		if p.Mode == "" {
			p.Mode = quota.ModeDefault
		}
		c.Google.Projects[name] = p
	}
}

// Completed returns settings that were made in code, with derived settings and defaults
// filled in. The error is an *[InvalidError], as from [Load].
func (c Config) Completed() (Config, error) {
	c.Google.Projects = maps.Clone(c.Google.Projects)
	c.complete()
	if err := c.Validate(); err != nil {
		return Config{}, &InvalidError{Problems: flatten(err)}
	}
	return c, nil
}
