package deploytest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"headroom/config"
	"headroom/internal/app"
)

const top = "../.."

// load reads docker-compose.yml as Docker does, with its demo profile on.
func load(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml")}},
		Environment: types.Mapping{},
	}, loader.WithProfiles([]string{"demo"}))
	if err != nil {
		t.Fatalf("docker-compose.yml: %v", err)
	}
	return project
}

func service(t *testing.T, p *types.Project, name string) types.ServiceConfig {
	t.Helper()
	s, err := p.GetService(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// flag is the word that follows a flag in a command.
func flag(command []string, name string) string {
	if i := slices.Index(command, name); i >= 0 && i+1 < len(command) {
		return command[i+1]
	}
	return ""
}

func TestRedisKeepsWhatItIsTold(t *testing.T) {
	redis := service(t, load(t), "redis")
	for name, want := range map[string]string{"--appendonly": "yes", "--maxmemory-policy": "noeviction"} {
		if got := flag(redis.Command, name); got != want {
			t.Errorf("redis runs with %s %q, want %q", name, got, want)
		}
	}
	if image, version, _ := strings.Cut(redis.Image, ":"); image != "redis" || !strings.HasPrefix(version, "7") {
		t.Errorf("redis runs the image %s, want redis:7", redis.Image)
	}
	if redis.HealthCheck == nil || !slices.Contains(redis.HealthCheck.Test, "ping") {
		t.Errorf("redis has no health check that pings: %+v", redis.HealthCheck)
	}
	if len(redis.Volumes) != 1 || redis.Volumes[0].Target != "/data" {
		t.Errorf("redis does not keep its log on a volume: %+v", redis.Volumes)
	}
}

func TestEveryRoleRunsOnce(t *testing.T) {
	var roles []app.Role
	for name, s := range load(t).Services {
		if s.Image != "headroom" || len(s.Command) == 0 {
			continue
		}
		switch s.Command[0] {
		case "run":
			got, err := app.ParseRoles(strings.Split(flag(s.Command, "--roles"), ","))
			if err != nil {
				t.Errorf("service %s: %v", name, err)
			}
			roles = append(roles, got...)
		case "fake-google":
			if !slices.Contains(s.Profiles, "demo") {
				t.Errorf("service %s runs outside the demo profile", name)
			}
		default:
			t.Errorf("service %s runs headroom %s, which is no role", name, strings.Join(s.Command, " "))
		}
	}
	slices.Sort(roles)
	want := slices.Clone(app.Roles)
	slices.Sort(want)
	if !slices.Equal(roles, want) {
		t.Errorf("the services run the roles %q, want each of %q once", roles, want)
	}
}

func TestServicesShareSettingsAndStore(t *testing.T) {
	project := load(t)
	for _, name := range []string{"scheduler", "worker", "web"} {
		s := service(t, project, name)
		if dep, ok := s.DependsOn["redis"]; !ok || dep.Condition != types.ServiceConditionHealthy {
			t.Errorf("%s does not wait for a healthy redis", name)
		}
		sources := map[string]string{}
		for _, v := range s.Volumes {
			sources[v.Target] = v.Source
		}
		if sources["/var/lib/headroom"] != "data" {
			t.Errorf("%s does not keep the store on the shared volume: %v", name, sources)
		}
		settings := s.Environment["HEADROOM_CONFIG"]
		if settings == nil || sources[*settings] == "" {
			t.Errorf("%s reads settings that are not mounted", name)
		} else if _, err := os.Stat(sources[*settings]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Build == nil {
			t.Errorf("%s has no build", name)
		} else if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettingsFitTheServices(t *testing.T) {
	cfg, err := config.Load(config.Options{Path: filepath.Join(top, "deploy", "headroom.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	project := load(t)
	service(t, project, "redis")
	if got := string(cfg.Redis.URL); got != "redis://redis:6379/0" {
		t.Errorf("redis.url is %s, want the service redis", got)
	}
	for _, name := range []string{"scheduler", "worker"} {
		if s := service(t, project, name); cfg.Metrics.Listen != "0.0.0.0:9090" || !slices.Equal(s.Expose, []string{"9090"}) || len(s.Ports) != 0 {
			t.Errorf("%s has its metrics on %s, exposes %q and publishes %+v; want port 9090 in the services' network only", name, cfg.Metrics.Listen, s.Expose, s.Ports)
		}
	}
	listen := "--listen=0.0.0.0:" + strings.TrimPrefix(cfg.Google.Endpoint.Reveal(), "http://fake-google:")
	if fake := service(t, project, "fake-google"); !slices.Contains(fake.Command, listen) {
		t.Errorf("google.endpoint is %s, fake-google runs %q", cfg.Google.Endpoint, fake.Command)
	}
	for _, path := range []string{cfg.Store.Path, cfg.Store.Blobs} {
		if !strings.HasPrefix(path, "/var/lib/headroom/") {
			t.Errorf("the store keeps %s, which is not on the volume", path)
		}
	}
	ports := service(t, project, "web").Ports
	if len(ports) != 1 || ports[0].HostIP != "127.0.0.1" || cfg.Web.Listen != "0.0.0.0:8080" || ports[0].Target != 8080 {
		t.Errorf("web listens on %s and publishes %+v, want port 8080 on loopback only", cfg.Web.Listen, ports)
	}
}
