package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
)

func TestFairness(t *testing.T) {
	got, err := config.Load(config.Options{Path: write(t, `
fairness:
  places_per_tenant: 20
  classes: {urgent: {weight: 4}, default: {weight: 2}}
  tenants:
    example.com: {weight: 3, class: urgent}
`), Environ: []string{"HEADROOM_FAIRNESS_PLACES=50"}, Set: []string{"fairness.tenants.mail.example.org.weight=0.5", "fairness.classes.bulk.weight=1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Fairness{Places: 50, PlacesPerTenant: 20,
		Classes: map[string]config.Class{"urgent": {Weight: 4}, "default": {Weight: 2}, "bulk": {Weight: 1}},
		Tenants: map[string]config.Tenant{"example.com": {Weight: 3, Class: "urgent"}, "mail.example.org": {Weight: 0.5}}}
	if diff := cmp.Diff(want, got.Fairness); diff != "" {
		t.Errorf("fairness (-want +got):\n%s", diff)
	}
}

func TestWrongFairnessIsNamed(t *testing.T) {
	_, err := config.Load(config.Options{Path: write(t, `
fairness:
  places: -1
  classes: {"a b": {weight: 1}, c: {weight: -2}}
  tenants: {t: {class: d}, u: {class: default}}
`)})
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Load = %v, want an InvalidError", err)
	}
	want := []string{
		"fairness.places: must be from 0 (as many as the limits feed) to 100000, not -1",
		"fairness.classes.a b: the name must have 1 to 128 characters that can be seen, no space, comma or =",
		"fairness.classes.c.weight: must be from 0.001 to 1000, or 0 for 1, not -2",
		`fairness.tenants.t.class: "d" is not among fairness.classes`,
	}
	if diff := cmp.Diff(want, unplaced(invalid)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
