// Package demo shows the main job in one process: three mailboxes are backfilled
// from a fake Google under its quota, while users open and list messages in the
// same accounts. It assembles the very parts that run in production and judges
// them by the fake's own meter.
package demo
