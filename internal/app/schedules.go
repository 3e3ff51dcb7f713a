package app

import (
	"headroom/config"
	"headroom/jobs"
	"headroom/scheduler"
)

// addSchedules adds what asks for work by the settings' schedules.
func (a *App) addSchedules() error {
	s, err := scheduler.NewSchedules(scheduler.SchedulesOptions{
		Store: a.store, TimingFunc: timingFunc(a.cfg), Log: a.opts.Log, Registerer: a.opts.Registry,
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"schedules", s.Run})
	return nil
}

// timingFunc says when schedules run, as the settings have it.
func timingFunc(cfg config.Config) func(jobs.Schedule, string, string) scheduler.Timing {
	return func(s jobs.Schedule, tenant, account string) scheduler.Timing {
		set := cfg.Schedule(string(s), tenant, account)
		t := scheduler.Timing{Spec: set.Spec, Zone: set.Zone, Spread: -1, CatchUp: set.CatchUp == config.CatchUps[0], Paused: *set.Pause}
		if set.Spec == config.NoSchedule {
			t.Spec = ""
		}
		if set.Spread != nil {
			t.Spread = *set.Spread
		}
		return t
	}
}
