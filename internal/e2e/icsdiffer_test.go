package e2e_test

// icsDiffer names the files that Headroom and the second library read differently,
// and why Headroom's reading is right, or as good.
var icsDiffer = map[string]string{
	// The second library takes times for ones without a zone whose TZID is none that it
	// knows. Google, and with it the fake, knows the zone that is meant.
	"ical.net__Ical.Net.Tests_Calendars_Serialization_Event3.ics":                                       "TZID with a vendor's prefix",
	"ical4j__src_test_resources_samples_invalid_phpicalendar_sample.ics":                                "TZID with a vendor's prefix",
	"ical4j__src_test_resources_samples_valid_evolution.ics":                                            "TZID with a vendor's prefix, defined with rules of before 2007",
	"icalendar__src_icalendar_tests_calendars_issue_313_globally_unique_tzid.ics":                       "TZID with a vendor's prefix",
	"icalendar__src_icalendar_tests_calendars_issue_466_convert_tzid_with_slash.ics":                    "TZID with a slash in front",
	"icalendar__src_icalendar_tests_calendars_issue_526_calendar_with_different_events.ics":             "TZID of a mail program's own, not defined",
	"icalendar__src_icalendar_tests_calendars_issue_526_calendar_with_event_subset.ics":                 "TZID of a mail program's own, not defined",
	"ical__tests_testdata_datetime_vtimezone.ics":                                                       "TZID that is defined below the event",
	"icalendar__src_icalendar_tests_calendars_issue_237_fail_to_parse_timezone_with_non_ascii_tzid.ics": "TZID that is none of IANA's: the fake looks for one like it by its offsets",

	// Google keeps no definitions of zones: a zone is IANA's, by today's rules.
	"ical.net__Ical.Net.Tests_Calendars_Alarm_ALARM1.ics":               "US-Eastern, which is not defined but for years before 1998",
	"ical.net__Ical.Net.Tests_Calendars_Recurrence_DailyInterval1.ics":  "US-Eastern by the rules of before 2007",
	"ical.net__Ical.Net.Tests_Calendars_Recurrence_HourlyInterval1.ics": "US-Eastern by the rules of before 2007",
	"ical.net__Ical.Net.Tests_Calendars_Recurrence_YearlyInterval1.ics": "US-Eastern by the rules of before 2007",

	// Zones like none of IANA's, which the fake reports and takes for the calendar's.
	"ical.js__samples_timezone_from_file.ics":                                              "zone Nowhere/Middle",
	"ical4j__src_test_resources_net_fortuna_ical4j_data_test-relaxed-parsing.ics":          "zone (GMT-03:00), not defined as it is named",
	"icalendar__src_icalendar_tests_calendars_issue_722_timezone_transition_ambiguity.ics": "zone MyTimezone",

	// Files that break RFC 5545, or that it says nothing about.
	"ical.js__samples_rdate_exdate.ics":                                    "EXDATE that is a day in a series with times: it takes that day's occurrence away",
	"icalendar__src_icalendar_tests_calendars_issue_165_missing_event.ics": "spaces in a rule, which the second library drops",
	"node-ical__test_fixtures_badRRULE.ics":                                "a rule with ANYTHINGRANDOM in it: reported, and one occurrence",
	"ical.net__Ical.Net.Tests_Calendars_Serialization_DateTime2.ics":       "DTSTART is a day and DTEND is not: the event is a day",
	"node-ical__test_fixtures_duplicate-rrule-sequence.ics":                "two series with one UID: Google keeps both",

	// The second library is wrong.
	"node-ical__test_fixtures_non-utc-until-ny.ics":    "it reads an UNTIL without Z as UTC, not by the clocks of DTSTART",
	"node-ical__test_fixtures_recurrence-sequence.ics": "it looks for the occurrence of a RECURRENCE-ID by its day alone",
}

// icsExportDiffer is icsDiffer for the files that are exported.
var icsExportDiffer = map[string]string{
	"node-ical__test_fixtures_non-utc-until-ny.ics":    "it compares an UNTIL in UTC with the offset that DTSTART had, not the occurrence",
	"node-ical__test_fixtures_recurrence-sequence.ics": "as in icsDiffer",
}
