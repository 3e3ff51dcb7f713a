package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

// A spender is one of many processes that spend from the same limits. It prints
// what it was granted.
type spender struct {
	Addrs   []string      // one: a server; more: a cluster
	Prefix  string        // of the keys
	Seed    uint64        //
	Scale   int           //
	User    int64         // limit of a user, units a minute
	Project int64         // limit of the project
	For     time.Duration // how long to spend
	Skew    time.Duration // of this process' clock
	Google  string        // URL of a fake Google: call it through a Transport, and print nothing
	Message string        // to fetch there
}

// spent is one grant, by the clock of Redis.
type spent struct {
	At    int64 // us
	User  string
	Units int64
	Lane  quota.Lane
	Total [2]int64 // used in the project's and the user's window after it
}

// spend is the main function of a spender.
func spend() int {
	var s spender
	if err := json.Unmarshal([]byte(os.Getenv("HEADROOM_TEST_SPENDER")), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var rdb redis.UniversalClient
	if len(s.Addrs) == 1 {
		rdb = redis.NewClient(quota.ClientOptions(&redis.Options{Addr: s.Addrs[0]}))
	} else {
		rdb = redis.NewClusterClient(quota.ClusterOptions(&redis.ClusterOptions{Addrs: s.Addrs}))
	}
	defer rdb.Close()
	list, err := price.Load("gmail-2026-05")
	if err == nil {
		list, err = list.WithLimit(price.UserMinute, s.User)
	}
	if err == nil {
		list, err = list.WithLimit(price.ProjectMinute, s.Project)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, KeyPrefix: s.Prefix, Scale: s.Scale, Fresh: true,
		Projects: map[string]quota.Project{"p": {Lists: []*price.List{list}}}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	quota.SkewClock(ledger, s.Skew)
	ctx, cancel := context.WithTimeout(context.Background(), s.For)
	defer cancel()
	if s.Google != "" {
		return fetch(ctx, s, ledger)
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(s.Seed, uint64(i)))
			for ctx.Err() == nil {
				c := quota.Caller{Project: "p", User: fmt.Sprint("user", rnd.IntN(3)), Lane: quota.Lanes[rnd.IntN(3)]}
				cost := []int64{5, 5, 20, 60, 100}[rnd.IntN(5)]
				d, err := ledger.Take(ctx, c, "gmail", cost)
				var denied *quota.DeniedError
				switch {
				case err == nil:
					mu.Lock()
					_ = out.Encode(spent{d.Charge.At.UnixMicro(), c.User, d.Charge.Units, c.Lane, [2]int64{d.Usage[0].Used, d.Usage[1].Used}})
					mu.Unlock()
				case errors.As(err, &denied):
					wait(ctx, min(denied.RetryAfter, 50*time.Millisecond))
				case ctx.Err() == nil:
					fmt.Fprintln(os.Stderr, err)
					wait(ctx, 10*time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	return 0
}

// fetch lists messages in the backfill lane, as fast as it is let.
func fetch(ctx context.Context, s spender, ledger *quota.Ledger) int {
	service, err := gmail.NewService(ctx, option.WithEndpoint(s.Google), option.WithHTTPClient(&http.Client{Transport: &quota.Transport{Limiter: ledger, Scale: ledger.Scale()}}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx = quota.WithCaller(ctx, quota.Caller{Project: "p", User: lossUser, Lane: quota.Backfill, MaxWait: time.Second})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := service.Users.Messages.Get("me", s.Message).Format("raw").Context(ctx).Do()
				var denied *quota.DeniedError
				if err != nil && !errors.As(err, &denied) && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	group.Wait()
	return 0
}

// TestProcessesThroughTheTransport lets one, four and sixteen processes fetch from
// one account at once: by the fake's meter they stay within the limit, and use
// what their lane may.
func TestProcessesThroughTheTransport(t *testing.T) {
	counts := []int{1, 4, 16}
	if testing.Short() {
		counts = []int{4}
	}
	for _, processes := range counts {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			t.Parallel()
			// On a busy machine, processes may not get to run when they are let.
			var used float64
			for range 3 {
				if used = fetchTogether(t, processes); used >= 0.90 || t.Failed() {
					break
				}
			}
			if used < 0.90 || used > 1.10 {
				t.Errorf("used %.3f of what the lane may, want at least 0.90", used)
			}
		})
	}
}

// fetchTogether holds processes that fetch to the limit by the fake's meter, and
// returns how much they used of what their lane may.
func fetchTogether(t *testing.T, processes int) (used float64) {
	t.Helper()
	fake, err := fakegoogle.New(fakegoogle.Options{Scale: 6, UserLimit: 3000, InFlightLimit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Load(lossUser, "generate:5"); err != nil {
		t.Fatal(err)
	}
	url, shutdown, err := fake.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer shutdown(context.WithoutCancel(t.Context()))
	startSpenders(t, spender{
		Addrs: []string{realRedis.Addr}, Prefix: ownPrefix(t), Scale: 6, User: 3000, Project: 1_200_000,
		For: 15 * time.Second, Google: url, Message: fake.Mailbox(lossUser).Messages()[0].ID,
	}, processes)
	report := fake.Meter().User(lossUser)
	seconds := report.LastCall.Sub(report.FirstCall).Seconds()
	used = float64(report.UnitsAdmitted) / (0.8 * 3000 / 60 * 6 * seconds)
	t.Logf("most in any window %d of %d; %.3f of what the lane may use, over %.1f s", report.MostInWindow, report.Limit, used, seconds)
	if report.WindowsOverLimit != 0 || report.Refused != 0 {
		t.Errorf("the fake saw %d windows over the limit and refused %d calls", report.WindowsOverLimit, report.Refused)
	}
	return used
}

// startSpenders runs processes, half of them with clocks 90 s fast and half 90 s
// slow, until they have ended, and returns what each printed.
func startSpenders(t *testing.T, s spender, processes int) []string {
	t.Helper()
	printed := make([]string, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			own := s
			own.Seed, own.Skew = uint64(i), []time.Duration{90 * time.Second, -90 * time.Second}[i%2]
			arg, err := json.Marshal(own)
			if err != nil {
				t.Error(err)
				return
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "HEADROOM_TEST_SPENDER="+string(arg))
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || stderr.Len() > 0 {
				t.Errorf("process %d: %v: %.500s", i, err, stderr.String())
			}
			printed[i] = string(out)
		})
	}
	group.Wait()
	return printed
}

// spendTogether runs processes that spend at once, and returns what they were
// granted, in order.
func spendTogether(t *testing.T, addrs []string, processes int) (s spender, all []spent) {
	t.Helper()
	s = spender{Addrs: addrs, Prefix: t.Name() + ":", Scale: 30, User: 6000, Project: 12_000, For: 5 * time.Second}
	for i, out := range startSpenders(t, s, processes) {
		for line := range strings.Lines(out) {
			var one spent
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatalf("process %d: %v", i, err)
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b spent) int { return int(a.At - b.At) })
	return s, all
}

// checkTogether holds every window of what was granted to the limits, and every
// grant to its lane's ceiling.
func checkTogether(t *testing.T, s spender, all []spent) {
	t.Helper()
	window := time.Minute.Microseconds() / int64(s.Scale)
	most := func(of func(spent) bool) (most int64) {
		var sum int64
		oldest := 0
		for i, one := range all {
			if of(one) {
				sum += one.Units
			}
			for ; all[oldest].At <= all[i].At-window; oldest++ {
				if of(all[oldest]) {
					sum -= all[oldest].Units
				}
			}
			most = max(most, sum)
		}
		return most
	}
	project := most(func(spent) bool { return true })
	if project > s.Project || project < s.Project/2 {
		t.Errorf("the most in any window of the project is %d, want at most %d and nearly that", project, s.Project)
	}
	for _, user := range []string{"user0", "user1", "user2"} {
		if got := most(func(one spent) bool { return one.User == user }); got > s.User {
			t.Errorf("the most in any window of %s is %d, limit %d", user, got, s.User)
		}
	}
	lanes := map[quota.Lane]int{}
	for _, one := range all {
		lanes[one.Lane]++
		ceiling := quota.ModeDefault.Lanes()[one.Lane].Ceiling
		if float64(one.Total[0]) > ceiling*float64(s.Project) || float64(one.Total[1]) > ceiling*float64(s.User) {
			t.Fatalf("granted %+v beyond the lane's ceiling of %v", one, ceiling)
		}
	}
	t.Logf("%d grants (%v), most in any window %d of %d", len(all), lanes, project, s.Project)
}

func TestSixteenProcesses(t *testing.T) {
	t.Parallel()
	processes := 16
	if testing.Short() {
		processes = 4
	}
	t.Run("redis", func(t *testing.T) {
		s, all := spendTogether(t, []string{realRedis.Addr}, processes)
		checkTogether(t, s, all)
	})
	t.Run("cluster", func(t *testing.T) {
		cluster, err := localredis.StartCluster(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Stop)
		s, all := spendTogether(t, cluster.Addrs(), processes)
		checkTogether(t, s, all)
	})
}

// TestClusterKeepsAProjectTogether spreads projects over the nodes of a cluster,
// and keeps each in one slot.
func TestClusterKeepsAProjectTogether(t *testing.T) {
	t.Parallel()
	cluster, err := localredis.StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	rdb := redis.NewClusterClient(quota.ClusterOptions(&redis.ClusterOptions{Addrs: cluster.Addrs()}))
	t.Cleanup(func() { rdb.Close() })
	projects := map[string]quota.Project{}
	for i := range 12 {
		projects[fmt.Sprint("p", i)] = quota.Project{Lists: []*price.List{gmailWith(t, 6000, 100_000)}}
	}
	ledger, err := quota.NewLedger(quota.Options{Redis: rdb, Projects: projects, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	slots := map[int64]bool{}
	for name := range projects {
		for user := range 5 {
			c := quota.Caller{Project: name, User: fmt.Sprint(user), Lane: quota.Interactive}
			if _, err := ledger.Take(t.Context(), c, "gmail", 5); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, key := range ledger.Keys(c, "gmail") {
				slot, err := rdb.ClusterKeySlot(t.Context(), key).Result()
				if err != nil {
					t.Fatal(err)
				}
				slots[slot] = true
			}
		}
	}
	if len(slots) < 6 || len(slots) > len(projects) {
		t.Errorf("the keys of %d projects are in %d slots, want one each", len(projects), len(slots))
	}
}
