package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control"
	"headroom/jobs"
	"headroom/quota/price"
)

// completionTimeout bounds how long a shell waits for completions from the store.
const completionTimeout = 2 * time.Second

// offer finds the completions of an argument or a flag, given the arguments before it.
type offer func(ctx context.Context, g *globals, args []string) []string

// argumentOffers are the completions of arguments, by their names in the usage line.
var argumentOffers = map[string]offer{
	"ACCOUNT":          accountOffer,
	"EMAIL":            accountOffer,
	"BACKFILL|ACCOUNT": backfillOffer,
	"CALENDAR":         calendarOffer,
	"SCHEDULE":         words(jobs.Schedules...),
	"ACCOUNT|PROJECT":  projectOrAccountOffer,
	"PROJECT|ACCOUNT":  projectOrAccountOffer,
	"LIST":             words(price.Names()...),
	"KEY=VALUE":        endingIn("=", quotaKeys),
	"ID":               nil, // of a message: there are too many
}

// flagOffers are the completions of flags. Flags in fileFlags are completed with file
// names, all other flags with nothing.
var flagOffers = map[string]offer{
	"account": accountOffer,
	"api":     words("gmail", "calendar"),
	"class":   classOffer,
	"limit":   words(price.UserMinute, price.ProjectMinute),
	"prices":  words(price.Names()...),
	"project": projectOffer,
	"roles":   words(app.Roles...),
	"set":     endingIn("=", config.Keys()),
	"tenant":  tenantOffer,
	"unset":   words(quotaKeys...),
}

// formatOffers are the values of --format, by the command.
var formatOffers = map[string]offer{
	"headroom backfill start":    words(jobs.Formats...),
	"headroom backfill estimate": words(jobs.Formats...),
	"headroom messages export":   words(formatMbox, formatEML),
	"headroom calendar export":   words(formatICS),
}

// classOffers are the values of --class where it is a class of faults.
var classOffers = map[string]offer{
	"headroom backfill failures":     words(jobs.ClassTransient, jobs.ClassItem, jobs.ClassAccount, jobs.ClassCursor, jobs.ClassSearch),
	"headroom backfill retry-failed": words(jobs.ClassTransient, jobs.ClassItem, jobs.ClassAccount, jobs.ClassCursor, jobs.ClassSearch),
}

var fileFlags = []string{"config", "csv", "mbox", "out"}

// quotaKeys are what quota set changes.
var quotaKeys = []string{"mode", "interactive.ceiling", "interactive.in_flight", "sync.ceiling", "sync.pace", "sync.in_flight",
	"backfill.ceiling", "backfill.floor", "backfill.pace", "backfill.in_flight"}

// complete makes shells complete the arguments and flags of all commands. An argument
// that is no file is never completed with file names.
func (g *globals) complete(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		g.complete(sub)
	}
	if cmd.HasParent() && !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil && !strings.HasPrefix(cmd.CommandPath(), "headroom completion") {
		names := argumentNames(cmd.Use)
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			var find offer
			if n := len(args); n < len(names) {
				find = argumentOffers[strings.TrimSuffix(names[n], "...")]
			} else if n > 0 && len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...") {
				find = argumentOffers[strings.TrimSuffix(names[len(names)-1], "...")]
			}
			return g.offered(cmd, find, args, prefix)
		}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" || slices.Contains(fileFlags, f.Name) {
			return
		}
		find := flagOffer(cmd, f.Name)
		// It only fails for a flag that is not there, or has an offer already.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if at := strings.LastIndex(prefix, ","); at >= 0 && f.Value.Type() == "stringSlice" {
				list, how := g.offered(cmd, find, args, prefix[at+1:])
				for i := range list {
					list[i] = prefix[:at+1] + list[i]
				}
				return list, how
			}
			return g.offered(cmd, find, args, prefix)
		})
	})
}

func flagOffer(cmd *cobra.Command, name string) offer {
	switch own := classOffers[cmd.CommandPath()]; {
	case name == "format":
		return formatOffers[cmd.CommandPath()]
	case name == "class" && own != nil:
		return own
	}
	return flagOffers[name]
}

// argumentNames are the names of the arguments in a usage line. Flags end them, also
// those that stand for an argument, as in "ACCOUNT | --all".
func argumentNames(use string) []string {
	var names []string
	for _, word := range strings.Fields(use)[1:] {
		name := strings.Trim(word, "[]")
		if strings.HasPrefix(name, "-") || name == "|" {
			break
		}
		names = append(names, name)
	}
	return names
}

// offered are the completions that begin with what was typed.
func (g *globals) offered(cmd *cobra.Command, find offer, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	how := cobra.ShellCompDirectiveNoFileComp
	if find == nil {
		return nil, how
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	var list []string
	for _, word := range find(ctx, g, args) {
		if strings.HasPrefix(word, prefix) {
			list = append(list, word)
		}
		if strings.HasSuffix(word, "=") {
			how |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return list, how
}

// words always offers the same words.
func words[T ~string](all ...T) offer {
	return func(context.Context, *globals, []string) []string {
		list := make([]string, len(all))
		for i, word := range all {
			list[i] = string(word)
		}
		return list
	}
}

// endingIn offers words with a suffix after which a value must follow.
func endingIn(end string, all []string) offer {
	return func(context.Context, *globals, []string) []string {
		var list []string
		for _, word := range all {
			if !strings.Contains(word, "<") { // a part of the key is a name that the user chooses
				list = append(list, word+end)
			}
		}
		return list
	}
}

// fromSettings offers names from the settings; nothing if these are not valid.
func fromSettings(find func(config.Config) []string) offer {
	return func(_ context.Context, g *globals, _ []string) []string {
		cfg, err := g.load()
		if err != nil {
			return nil
		}
		return find(cfg)
	}
}

// fromStore offers names from the store; nothing if it cannot be read.
func fromStore(find func(ctx context.Context, c *control.Control, args []string) ([]string, error)) offer {
	return func(ctx context.Context, g *globals, args []string) []string {
		cfg, err := g.load()
		if err != nil {
			return nil
		}
		c := control.New(control.Options{Config: cfg, Log: zap.NewNop()})
		defer c.Close() // it was only read
		list, err := find(ctx, c, args)
		if err != nil {
			return nil
		}
		return list
	}
}

var (
	accountOffer = fromStore(func(ctx context.Context, c *control.Control, _ []string) ([]string, error) {
		all, err := c.Accounts(ctx)
		return texts(all, func(a jobs.Account) string { return a.Email }), err
	})
	tenantOffer = fromStore(func(ctx context.Context, c *control.Control, _ []string) ([]string, error) {
		all, err := c.Accounts(ctx)
		return texts(all, func(a jobs.Account) string { return a.Tenant }), err
	})
	backfillOffer = fromStore(func(ctx context.Context, c *control.Control, _ []string) ([]string, error) {
		all, err := c.AllBackfills(ctx, false)
		return texts(all, nameOf), err
	})
	calendarOffer = fromStore(func(ctx context.Context, c *control.Control, args []string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		all, err := c.Calendars(ctx, args[0])
		return append(texts(all, func(c jobs.CountedCalendar) string { return c.ID }), "primary"), err
	})
	projectOffer = fromSettings(func(cfg config.Config) []string { return slices.Sorted(maps.Keys(cfg.Google.Projects)) })
	classOffer   = fromSettings(func(cfg config.Config) []string {
		return append(slices.Sorted(maps.Keys(cfg.Fairness.Classes)), jobs.DefaultClass)
	})
)

func projectOrAccountOffer(ctx context.Context, g *globals, args []string) []string {
	return append(projectOffer(ctx, g, args), accountOffer(ctx, g, args)...)
}

// texts are the distinct texts of some values.
func texts[T any](all []T, text func(T) string) []string {
	var list []string
	for _, one := range all {
		if t := text(one); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}
