package quota

import (
	"embed"
	"regexp"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua
var sources embed.FS

var (
	acquireScript  = newScript("acquire.lua")
	releaseScript  = newScript("release.lua")
	renewScript    = newScript("renew.lua")
	lookScript     = newScript("look.lua")
	cooldownScript = newScript("cooldown.lua")
	publishScript  = newScript("publish.lua")
)

var include = regexp.MustCompile(`(?m)^ *--#include (\S+)\n`)

// newScript makes a script of its source: with the sources that it includes, and with
// the numbers of layout.go.
func newScript(name string) *redis.Script { return redis.NewScript(withNumbers(sourceOf(name))) }

func sourceOf(name string) string {
	source, err := sources.ReadFile(name)
	if err != nil {
		panic(err) // a script includes what is not there
	}
	return include.ReplaceAllStringFunc(string(source), func(line string) string {
		return sourceOf(include.FindStringSubmatch(line)[1])
	})
}
