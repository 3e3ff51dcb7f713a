// Package fakegoogle is a Google to test against: a Gmail and a Calendar that
// speak the real protocol, meter every call by their own tables and clock, refuse as
// Google refuses, and break on demand.
//
// It is the judge of the rest of this module and therefore shares nothing with
// it: no code, no cost table, no notion of time. It depends on the standard
// library and a few third-party packages only.
//
// A [Server] is an [http.Handler]. It owns mailboxes ([Server.Load],
// [Server.AddMailbox]) and calendars ([Server.LoadCalendars], [Server.AddCalendar]),
// a meter for each of the two and a list of scripted faults. Every call of
// the API goes the same way:
//
//	socket ─► jitter ─► who is it? ─► meter ─► fault? ─► latency ─► answer
//	                        │           │
//	                       401      403 / 429
//
// Two things look at a call when it reaches the meter, and they are separate:
//
//   - the enforcing meter (fixed, anchored, sliding or bucket; see [Options]) admits or
//     refuses it, as Google would;
//   - the exact log notes it, admitted or refused, with its monotonic time.
//     The figures of [Report] come from that log alone, so they say the same
//     whichever algorithm enforces.
//
// Answers that the fake cannot know to be Google's are marked "unverified" where
// they are made. Deviations are listed in docs/fake-google.md.
package fakegoogle
