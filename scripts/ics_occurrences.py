#!/usr/bin/env python3
"""Lists when the events of iCalendar files take place, by a library that shares
nothing with Headroom: Debian's python3-icalendar and python3-recurring-ical-events.

Reads JSON on stdin, [{"path", "zone", "from", "to"}, ...]: zone is that of times
without one, from and to are days. Writes one line of JSON for each file:
{"path", "error"} where the library cannot read it, or {"path", "occurrences"} with
[UID, start] of each occurrence that begins within from and to: a day as
2026-03-10, a moment as 2026-03-10T15:00:00Z. Cancelled ones are left out.
"""
import datetime
import json
import signal
import sys

import icalendar
import pytz
import recurring_ical_events

DAY = datetime.timedelta(days=1)


def start_of(event, zone):
    start = event["DTSTART"].dt
    if not isinstance(start, datetime.datetime):
        return start.isoformat()
    if start.tzinfo is None:
        start = zone.localize(start)
    return start.astimezone(pytz.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_start(event):
    start = event.get("DTSTART")
    return isinstance(start, list) or hasattr(start, "dt")


def without_start(component):
    """Takes out events that have no start: they take place never."""
    component.subcomponents = [c for c in component.subcomponents if c.name != "VEVENT" or with_start(c)]
    return component


def occurrences(asked):
    zone = pytz.timezone(asked["zone"])
    first = datetime.datetime.fromisoformat(asked["from"])
    last = datetime.datetime.fromisoformat(asked["to"])
    with open(asked["path"], "rb") as file:
        text = file.read()
    found = []
    for calendar in icalendar.Calendar.from_ical(text, multiple=True):
        if calendar.name == "VEVENT" and not with_start(calendar):
            continue
        # A little more on both sides, as the library's days depend on time zones.
        for event in recurring_ical_events.of(without_start(calendar)).between(first - 2 * DAY, last + 2 * DAY):
            start = start_of(event, zone)
            if asked["from"] <= start[:10] < asked["to"] and event.get("STATUS", "").upper() != "CANCELLED":
                found.append([str(event.get("UID", "")), start])
    return found


def too_long(*_):
    raise TimeoutError("takes more than a second of CPU time")


signal.signal(signal.SIGVTALRM, too_long)
for asked in json.load(sys.stdin):
    answer = {"path": asked["path"]}
    signal.setitimer(signal.ITIMER_VIRTUAL, 1)
    try:
        answer["occurrences"] = occurrences(asked)
    except Exception as problem:  # whatever the library makes of an odd file
        answer["error"] = repr(problem)[:200]
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(json.dumps(answer), flush=True)
