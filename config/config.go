// Package config is the settings of Headroom: what they are, where they come
// from, and whether they make sense. It decides nothing about their use.
//
// A setting is taken from the last of these that names it: the defaults of
// [Default], the settings file (headroom.yaml), the environment (HEADROOM_*),
// the command line (--set). docs/configuration.md lists every key; a test holds
// that page to the types here.
package config

import (
	"maps"
	"path/filepath"
	"time"
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

// Google says where Google is and which Google Cloud projects are used.
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
	Mode        string            `yaml:"mode"`        // of the lanes, one of [Modes]
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
	DailyUnits *int64   `yaml:"daily_units"` // 0: no budget; nil: above what Google bills, if the list says
	Hard       bool     `yaml:"hard"`        // it binds interactive calls too
	AtEnd      string   `yaml:"at_end"`      // one of [AtEnds]; "": pause
	Ahead      *float64 `yaml:"ahead"`       // share by which backfills may be ahead of an even spending; nil: DefaultAhead
}

// AtEnds lists what may happen when a day's budget is spent.
var AtEnds = []string{"pause", "alert", "go_on"}

// DefaultAhead is the share of a day's budget by which backfills may be ahead of
// spending it evenly.
const DefaultAhead = 0.25

// Modes lists what a project's lanes may be set to as a whole.
var Modes = []string{"default", "guaranteed", "adaptive"}

// Lanes holds what differs from the mode's settings of each lane.
type Lanes struct {
	Interactive Lane         `yaml:"interactive"`
	Sync        Lane         `yaml:"sync"`
	Backfill    BackfillLane `yaml:"backfill"`
}

// Lane says how far up a limit a lane may fill it, how fast, and how many calls
// it adds to. Nil takes the mode's value.
type Lane struct {
	Ceiling  *float64 `yaml:"ceiling"`   // share of the limit, above 0 and at most 1
	Pace     *float64 `yaml:"pace"`      // multiple of ceiling/60 per second; 0: not paced
	InFlight *int     `yaml:"in_flight"` // of one Google user, in all processes and lanes
}

// BackfillLane is a [Lane] whose ceiling may give way.
type BackfillLane struct {
	Ceiling  *float64 `yaml:"ceiling"`
	Floor    *float64 `yaml:"floor"` // how far the ceiling gives way to people, as a share of the limit; 0: not at all
	Pace     *float64 `yaml:"pace"`
	InFlight *int     `yaml:"in_flight"`
}

// Redis says where Redis is and which keys are ours.
type Redis struct {
	URL          URL    `yaml:"url"`
	QueuePrefix  string `yaml:"queue_prefix"`  // of the names of queues
	LedgerPrefix string `yaml:"ledger_prefix"` // of the ledger's keys
}

// Quota says what holds while Redis cannot be asked.
type Quota struct {
	FailOpen float64 `yaml:"fail_open"` // share of each limit for this process' interactive calls; 0: none
}

// Store says where jobs, records and message bodies are kept.
type Store struct {
	Path  string `yaml:"path"`  // of the SQLite file
	Blobs string `yaml:"blobs"` // folder of the raw messages; "": blobs beside Path
}

// Worker bounds the work of one process.
type Worker struct {
	Concurrency          int           `yaml:"concurrency"` // slices at once; they mostly wait
	InFlight             int           `yaml:"in_flight"`   // requests at once for one account
	Slice                time.Duration `yaml:"slice"`       // length of one slice of work
	Lease                time.Duration `yaml:"lease"`       // a worker silent for this long has lost its job
	MessageBytesInFlight Bytes         `yaml:"message_bytes_in_flight"`
	MaxMessageBytes      Bytes         `yaml:"max_message_bytes"` // of larger messages no body is brought; 0: of any size
}

// Scheduler says when the scheduler looks for work.
type Scheduler struct {
	Tick string `yaml:"tick"` // cron specification, with seconds if it has six fields
}

// Sync says how often a mailbox's history is read once it is backfilled.
type Sync struct {
	Interval time.Duration `yaml:"interval"` // between two syncs of a mailbox; 0: only when asked for
}

// Web is the HTTP server of a process with the role web.
type Web struct {
	Listen string   `yaml:"listen"` // host:port
	Hosts  []string `yaml:"hosts"`  // names by which a process may be asked, besides localhost, IP addresses and names without a dot
}

// Metrics is the HTTP server of a process without the role web. It answers with
// metrics and health only.
type Metrics struct {
	Listen string `yaml:"listen"` // host:port; "": the process does not listen
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // auto, console or json
}

// DefaultPath is where the settings are read from unless the command line says
// otherwise.
const DefaultPath = "headroom.yaml"

// DefaultPrices are the price lists of a project that names none: the most expensive
// of those that may hold for it, so that the ledger never counts less than Google.
var DefaultPrices = []string{"gmail-2026-10", "calendar-2026-05"}

// Default returns the settings of an installation that sets nothing, without
// those that follow from others: see [Config.Completed]. It has no Google Cloud
// project, which only the worker needs.
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

// complete fills in what depends on other settings, and what the projects leave
// to the defaults.
func (c *Config) complete() {
	if c.Store.Blobs == "" && c.Store.Path != "" {
		c.Store.Blobs = filepath.Join(filepath.Dir(c.Store.Path), "blobs")
	}
	for name, p := range c.Google.Projects {
		if p.Prices == nil {
			p.Prices = append([]string(nil), DefaultPrices...)
		}
		if p.Mode == "" {
			p.Mode = Modes[0]
		}
		c.Google.Projects[name] = p
	}
}

// Completed returns settings that were made in code with what they leave to the
// defaults filled in. The error is an *[InvalidError], as from [Load].
func (c Config) Completed() (Config, error) {
	c.Google.Projects = maps.Clone(c.Google.Projects)
	c.complete()
	if err := c.Validate(); err != nil {
		return Config{}, &InvalidError{Problems: flatten(err)}
	}
	return c, nil
}
