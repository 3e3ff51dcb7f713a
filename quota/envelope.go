package quota

import (
	"encoding/json"
	"slices"
	"strings"
)

// An answer is Google's error envelope, as far as it is about quota, in its newer
// and older forms. It is zero where the body was none.
type answer struct {
	message string
	reasons []string // of errors[], then of details[], then the status
	unit    string   // quota_unit of details[]
	window  string   // window_start_time of details[], in seconds since 1970
}

// readAnswer reads a body. What is no envelope, or a part of one, is left out.
func readAnswer(body []byte) answer {
	var envelope struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
			Details []json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return answer{} // HTML, or a cut body
	}
	e := envelope.Error
	a := answer{message: e.Message}
	for _, item := range e.Errors {
		a.addReason(item.Reason)
	}
	for _, raw := range e.Details {
		var info struct { // google.rpc.ErrorInfo; other types leave it empty
			Reason   string            `json:"reason"`
			Metadata map[string]string `json:"metadata"`
		}
		if json.Unmarshal(raw, &info) != nil {
			continue
		}
		a.addReason(info.Reason)
		if a.unit == "" {
			a.unit = info.Metadata["quota_unit"]
		}
		if a.window == "" {
			a.window = info.Metadata["window_start_time"]
		}
	}
	a.addReason(e.Status)
	return a
}

func (a *answer) addReason(reason string) {
	if reason != "" {
		a.reasons = append(a.reasons, reason)
	}
}

// reason is the one to tell people.
func (a answer) reason() string {
	if len(a.reasons) == 0 {
		return ""
	}
	return a.reasons[0]
}

func (r refusalRule) fits(status int, a answer) bool {
	message := strings.ToLower(a.message)
	hasReason := func(reason string) bool {
		return slices.Contains(a.reasons, reason) ||
			reason == reasonRate && strings.HasPrefix(message, "quota exceeded for quota")
	}
	return (r.status == 0 || r.status == status) &&
		(r.reasons == nil || slices.ContainsFunc(r.reasons, hasReason)) &&
		strings.Contains(message, r.says) &&
		(r.without == "" || !strings.Contains(message, r.without)) &&
		strings.Contains(a.unit, r.unit)
}
