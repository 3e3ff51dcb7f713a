package layers_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// anything may be imported, except commands.
var anything = []string{"*"}

const fake = "internal/lab/fakegoogle"

// may says which of our packages a package may import. A package without a rule
// fails the test: whoever adds one decides where it stands.
var may = map[string][]string{
	"cmd/headroom": { // flags and rendering: never a store
		"config", "internal/app", "internal/control", "internal/control/estimate", "internal/control/progress", "internal/control/quotaview", // what commands do
		"internal/agenda", "internal/export", // what exports are made of
		"internal/gauge", "internal/term", // how results look
		"internal/lab/cli",    // more commands
		"jobs", "quota/price", // words
	},
	"config":             {"internal/cronspec", "jobs", "quota", "quota/price"}, // the words of the settings, and to check schedules as they are read when they run
	"internal/cronspec":  nil,                                                   // knows cron and time zones, not what runs
	"internal/agenda":    {"internal/lenient", "jobs"},
	"internal/api":       {"internal/agenda", "internal/control", "internal/control/estimate", "internal/control/quotaview", "jobs", "quota", "quota/price"}, // shows what control returns
	"internal/app":       anything,
	"internal/lab/bench": anything,
	"internal/lab/cli":   anything, // the commands of the laboratory assemble it
	"internal/lab/demo":  anything,
	"internal/blob":      {"internal/private", "jobs"}, // its files are private; the errors of a missing body and a full disk are jobs'
	"internal/control": { // what operators can do, over everything that a process opens
		"config", "internal/agenda", "internal/blob", "internal/control/estimate", "internal/control/progress", "internal/control/quotaview", "internal/google",
		"internal/private", "internal/queueowner", "internal/redisconn", "internal/store/sqlite", "jobs", "quota", "quota/price", "scheduler",
	},
	"internal/control/estimate":  {"internal/google", "internal/store/sqlite", "jobs", "quota", "quota/price", "workers"}, // asks Google and the store; workers decide by which calls
	"internal/control/progress":  {"jobs"},
	"internal/control/quotaview": {"internal/store/sqlite", "jobs", "quota", "quota/price"}, // reads the ledger, and the jobs that wait
	"internal/deploytest":        nil,
	"internal/e2e":               anything,                                                 // runs whole processes
	"internal/gauge":             {"internal/control/quotaview", "internal/term", "quota"}, // the state of the quota, how it is written, and the words for it
	"internal/export":            {"internal/agenda", "jobs"},
	// The judge shares nothing with the judged: the fake imports only itself. Gmail
	// and Calendar do not know each other; both meter and answer through what is
	// below them.
	fake:                      {fake + "/calendar", fake + "/fault", fake + "/gmail", fake + "/meter", fake + "/wire"}, // assembles
	fake + "/calendar":        {fake + "/discovery", fake + "/fault", fake + "/meter", fake + "/page", fake + "/wire"},
	fake + "/discovery":       nil,                               // Google's own description of its APIs, for tests
	fake + "/fault":           {fake + "/meter", fake + "/wire"}, // which calls it concerns; what is sent instead
	fake + "/gmail":           {fake + "/discovery", fake + "/fault", fake + "/meter", fake + "/page", fake + "/wire"},
	fake + "/meter":           {fake + "/discovery", fake + "/wire"}, // how addresses are compared
	fake + "/page":            {fake + "/fault", fake + "/wire"},     // quirks of pages; errors
	fake + "/wire":            nil,
	"internal/google":         {"internal/lenient", "internal/service", "jobs", "quota"},
	"internal/layers":         nil,
	"internal/lenient":        nil,
	"internal/lab/localredis": nil,
	"internal/lab/rig":        {"config", "internal/app", "internal/control", "internal/control", fake, "internal/lab/localredis", "jobs"}, // whole installations
	"internal/lab/traffic":    {"quota", "quota/price"},                                                                                    // interactive calls, through the ledger
	"internal/private":        nil,                                                                                                         // knows modes, not what the files hold
	"internal/push":           {"jobs"},
	"internal/queueowner":     {"config", "internal/redisconn", "internal/store/sqlite", "jobs", "quota"}, // the store's id against that in Redis
	"internal/redisconn":      {"config", "quota"},                                                        // the URL of the settings, and what the ledger asks of a Redis
	"internal/store/sqlite":   {"jobs"},
	"internal/service":        nil, // loops and checks options, whatever the work is
	"internal/term":           nil,
	"internal/web":            {"internal/term", "jobs"},
	"jobs":                    nil,
	"quota":                   {"quota/price"}, // what calls cost
	"quota/price":             nil,
	"scheduler":               {"internal/cronspec", "internal/service", "jobs"},                     // when slots are, and how its loops run
	"workers":                 {"internal/blob", "internal/service", "jobs", "quota", "quota/price"}, // blob: the writer of one body; service: to check options; price: what a thread costs beside its messages

	// The conformance suite of stores and the store of tests.
	"internal/store/memstore":  {"jobs"}, // keeps what jobs decides, and logs nothing
	"internal/store/storetest": {"jobs"}, // knows what a store keeps, and no store
}

// testsToo lists the packages whose tests are held to the same rule.
var testsToo = []string{
	fake, fake + "/calendar", fake + "/discovery", fake + "/fault", fake + "/gmail", fake + "/meter", fake + "/page", fake + "/wire",
}

// apart lists pairs that never import each other, tests included: they meet in
// the store and the queue only.
var apart = [][2]string{{"scheduler", "workers"}}

const module = "headroom/"

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// ours lists all packages of the module, and of their imports those of ours.
func ours(t *testing.T) map[string]pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		name, _ := strings.CutPrefix(p.ImportPath, module)
		for _, list := range []*[]string{&p.Imports, &p.TestImports, &p.XTestImports} {
			*list = own(*list)
		}
		all[name] = p
	}
}

func own(imports []string) []string {
	var names []string
	for _, path := range imports {
		if name, ok := strings.CutPrefix(path, module); ok {
			names = append(names, name)
		}
	}
	return names
}

func TestImportsPointOneWay(t *testing.T) {
	for name, p := range ours(t) {
		allowed, known := may[name]
		if !known {
			t.Errorf("package %s has no rule; add one to this test", name)
			continue
		}
		imports := p.Imports
		if slices.Contains(testsToo, name) {
			imports = slices.Concat(imports, p.TestImports, p.XTestImports)
		}
		for _, other := range imports {
			switch {
			case other == name: // its own external test
			case strings.HasPrefix(other, "cmd/"):
				t.Errorf("%s imports the command %s", name, other)
			case !slices.Contains(allowed, other) && !slices.Equal(allowed, anything):
				t.Errorf("%s imports %s; it may import %q of ours", name, other, allowed)
			}
		}
	}
}

func TestSomePackagesNeverMeet(t *testing.T) {
	all := ours(t)
	for _, pair := range apart {
		for i, name := range pair {
			p, there := all[name]
			if !there {
				t.Errorf("there is no package %s", name)
			}
			if other := pair[1-i]; slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), other) {
				t.Errorf("%s imports %s", name, other)
			}
		}
	}
}

// laboratory are what may import the laboratory: itself, and what stands around the
// product. Tests of the product may, too.
var laboratory = []string{"cmd/headroom", "internal/e2e", "internal/lab/"}

func TestTheProductDoesNotNeedTheLaboratory(t *testing.T) {
	for name, p := range ours(t) {
		if slices.ContainsFunc(laboratory, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		for _, other := range p.Imports {
			if strings.HasPrefix(other, "internal/lab/") {
				t.Errorf("%s is of the product and imports %s", name, other)
			}
		}
	}
}
