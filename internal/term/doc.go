// Package term is how commands write results: as text for people, in tables, grids,
// pages and progress bars, and as JSON. It knows no command and no job.
//
// Text that comes from outside, such as the subject of a message, must not control a
// terminal. So all output passes [Clean], most of it because it is written to an
// [Output].
package term
