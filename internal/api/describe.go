package api

import "headroom/jobs"

// descriptions are for what stands in types of the vocabulary, by type and name in
// JSON.
var descriptions = map[string]map[string]string{
	"Filter": {
		"after": "Received at this moment or later, to the second.", "before": "Received before this moment.",
		"labels": "Ids of labels, all of which a message must have.", "query": "In the syntax of Gmail's search.",
		"spam_trash": "Spam and trash too.", "max_size": "Of the raw message, in bytes; 0: any.",
		"first": "Only the newest so many; 0: all.", "format": "What of a message is brought, and in which order; raw if left out.",
	},
	"Job": {
		"wanted": "The state that the job is being brought to.", "epoch": "Rises when the job changes owner.",
		"waiting_for": "The limit, or the fault, that the job waits for.", "refusals": "In a row, without progress between them.",
		"failures": "In a row, without progress between them.", "requeued": "Times the job went back to the queue for quota.",
	},
	"Progress": {
		"expected": "What the mailbox promises; an estimate until the listing is complete.", "stored": "Fetched and stored by this run.",
		"known": "Stored before, skipped without a call.", "gone": "Deleted at Google between list and get.",
		"skipped": "Seen to be outside the filter.", "failed": "Given up; see the failures.",
		"parse_failed": "Stored, but no mail reader understands them; part of stored.", "bytes": "Of raw messages stored.",
	},
	"Message": {"sha256": "Of the raw message; empty while its body is not stored.", "size": "Of the raw message, in bytes."},
	"Event": {
		"status": "As Google last said.", "series": "The id of the series that this is an occurrence of.",
		"original_start": "When it would have begun: a date, or a moment.", "event": "As Google gave it.", "deleted_at": "Since when it is known to be deleted.",
	},
	"Occurrence": {
		"id": "As Google names it.", "series": "The id of the event that repeats.", "end": "Exclusive.",
		"original": "When it would have begun, where it differs from its series.",
	},
	"Watch": {
		"calendar": "The id, of a watch of kind calendar.", "channel": "The id of the channel that is in use; Gmail has none.",
		"renew_at": "When it is to be renewed.", "failures": "Attempts to renew it that failed, in a row.", "next_try": "No attempt is made before.",
	},
	"FailureFilter": {"ids": "At most 1000.", "reason": "Exactly as listed.", "given_up": "Only those that are not tried again by themselves."},
}

// describe adds to the types of the vocabulary what Go's types do not say.
func (a *API) describe() {
	types := a.huma.OpenAPI().Components.Schemas.Map()
	for name, properties := range descriptions {
		for property, text := range properties {
			types[name].Properties[property].Description = text
		}
	}
	for _, state := range jobs.States {
		types["Job"].Properties["state"].Enum = append(types["Job"].Properties["state"].Enum, string(state))
	}
	for _, format := range jobs.Formats {
		types["Filter"].Properties["format"].Enum = append(types["Filter"].Properties["format"].Enum, string(format))
	}
}
