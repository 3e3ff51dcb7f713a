package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// MaxSkew is how far the local clock and that of Redis may be apart: the ledger
// does not care, but the leases of tasks are kept by local clocks.
const MaxSkew = 5 * time.Second

// Check reports whether a Redis, or every master of a cluster, will do for a
// ledger: it must let its user run INFO, it must not evict keys, since a window that
// was evicted is forgotten spending, and its clock must be within [MaxSkew] of the local one. All that is
// wrong is joined, each a line that names the command that mends it; the error is
// [ErrUnavailable] if Redis did not answer.
//
// The warnings are about what is for the operator to see to, since Redis does not
// tell it, as some managed ones keep their configuration to themselves.
func Check(ctx context.Context, rdb redis.UniversalClient) (warnings []string, err error) {
	return checkAt(ctx, rdb, time.Now)
}

func checkAt(ctx context.Context, rdb redis.UniversalClient, now func() time.Time) (warnings []string, err error) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return checkNode(ctx, rdb, now)
	}
	var mu sync.Mutex
	var problems []error
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		w, err := checkNode(ctx, node, now)
		mu.Lock()
		defer mu.Unlock()
		warnings, problems = append(warnings, w...), append(problems, err)
		return nil
	})
	if err != nil {
		problems = append(problems, fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	return warnings, errors.Join(problems...)
}

func checkNode(ctx context.Context, rdb redis.UniversalClient, now func() time.Time) (warnings []string, err error) {
	clock := checkClock(ctx, rdb, now)
	if errors.Is(clock, ErrUnavailable) {
		return nil, clock
	}
	if err := checkInfo(ctx, rdb); err != nil {
		return nil, errors.Join(clock, err)
	}
	policy, err := evictionPolicy(ctx, rdb)
	switch {
	case err != nil:
		return nil, errors.Join(clock, err)
	case policy == "":
		return []string{fmt.Sprintf("the Redis%s does not tell its maxmemory-policy; see to it that it is noeviction", at(rdb))}, clock
	case policy != "noeviction":
		return nil, errors.Join(clock, fmt.Errorf("the Redis%s may evict the quota's windows (maxmemory-policy %s); run: %s CONFIG SET maxmemory-policy noeviction",
			at(rdb), policy, redisCLI(rdb)))
	}
	return nil, clock
}

// checkInfo refuses a Redis that does not let its user run INFO. By that the ledger
// notices that Redis was started anew, perhaps from an old dump, without what was
// spent since. The embedded Redis does not know the section, and keeps no dump.
func checkInfo(ctx context.Context, rdb redis.UniversalClient) error {
	err := rdb.Info(ctx, "server").Err()
	reply, answered := errors.AsType[redis.Error](err)
	switch {
	case err == nil, answered && strings.Contains(reply.Error(), "is not supported"):
		return nil
	case !answered:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	what := fmt.Sprintf("the Redis%s does not let its user run INFO, by which the ledger notices that Redis lost what was spent", at(rdb))
	if grant, ok := MissingPermission(err, userOf(rdb)); ok {
		return fmt.Errorf("%s; as an administrator run: %s %s", what, redisCLI(rdb), grant)
	}
	return fmt.Errorf("%s (%w); let it, or use another Redis", what, err)
}

var forbiddenCommand = regexp.MustCompile(`run the '([^' ]+)'? `)

// MissingPermission returns the command by which an administrator of Redis gives a
// user the permission that an error says is missing; ok is false for other errors. A
// user without a name is Redis' default user.
func MissingPermission(err error, user string) (grant string, ok bool) {
	reply, answered := errors.AsType[redis.Error](err)
	if !answered || !strings.HasPrefix(reply.Error(), "NOPERM") {
		return "", false
	}
	rule := "+@all"
	switch text := reply.Error(); {
	case forbiddenCommand.MatchString(text):
		rule = "+" + strings.ToLower(forbiddenCommand.FindStringSubmatch(text)[1])
	case strings.Contains(text, "key"):
		rule = "'~*'"
	case strings.Contains(text, "channel"):
		rule = "'&*'"
	}
	return fmt.Sprintf("ACL SETUSER %s %s", cmp.Or(user, "default"), rule), true
}

// userOf is the user of a client.
func userOf(rdb redis.UniversalClient) string {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().Username
	case *redis.ClusterClient:
		return c.Options().Username
	}
	return ""
}

func checkClock(ctx context.Context, rdb redis.UniversalClient, now func() time.Time) error {
	before := now()
	theirs, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	// Redis read its clock about half way between question and answer.
	skew := theirs.Sub(before.Add(now().Sub(before) / 2)).Round(time.Millisecond)
	side := "behind"
	if skew < 0 {
		skew, side = -skew, "ahead of"
	}
	if skew <= MaxSkew {
		return nil
	}
	return fmt.Errorf("the clock of this machine is %s %s that of the Redis%s, more than %s; set both by NTP (run: timedatectl set-ntp true)",
		skew, side, at(rdb), MaxSkew)
}

// evictionPolicy asks for maxmemory-policy, and where CONFIG is forbidden, INFO
// for the same; it is "" where Redis tells neither.
func evictionPolicy(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	config, err := rdb.ConfigGet(ctx, "maxmemory-policy").Result()
	if policy := config["maxmemory-policy"]; policy != "" {
		return policy, nil
	}
	info, infoErr := rdb.Info(ctx, "memory").Result()
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy, nil
		}
	}
	for _, err := range []error{err, infoErr} {
		if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
			return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return "", nil
}

// at says where a Redis is, as far as its client knows.
func at(rdb redis.UniversalClient) string {
	if node, ok := rdb.(*redis.Client); ok {
		return " at " + node.Options().Addr
	}
	return ""
}

// redisCLI is the command line that reaches a Redis, but for the password.
func redisCLI(rdb redis.UniversalClient) string {
	node, ok := rdb.(*redis.Client)
	switch {
	case !ok:
		return "redis-cli -u URL"
	case node.Options().Network == "unix":
		return "redis-cli -s " + node.Options().Addr
	case node.Options().TLSConfig != nil:
		return "redis-cli -u rediss://" + node.Options().Addr
	}
	return "redis-cli -u redis://" + node.Options().Addr
}
