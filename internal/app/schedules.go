package app

import (
	"headroom/internal/control"
	"headroom/scheduler"
)

// addSchedules adds what asks for work by the settings' schedules.
func (a *App) addSchedules() error {
	s, err := scheduler.NewSchedules(scheduler.SchedulesOptions{
		Store: a.store, TimingFunc: control.TimingFunc(a.cfg), Log: a.opts.Log, Registerer: a.opts.Registry,
	})
	if err != nil {
		return err
	}
	a.parts = append(a.parts, part{"schedules", s.Run})
	return nil
}
