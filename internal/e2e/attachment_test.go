package e2e_test

import (
	"net/http"
	"testing"

	"headroom/internal/api"
	"headroom/internal/app"
	"headroom/internal/lab/fakegoogle"
	"headroom/internal/lab/fakegoogle/fault"
	"headroom/jobs"
)

// TestAttachmentsOfNothingAreThere stores messages whose attachments are empty, stand
// in the message, share a name or have none, and reads each by both ways.
func TestAttachmentsOfNothingAreThere(t *testing.T) {
	t.Parallel()
	r := newSiteOf(t, fakegoogle.Options{Scale: 100}, map[string]int{ann: 0})
	box := r.fake.Mailbox(ann)
	const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	two := "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n" +
		"--x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\nfirst\r\n" +
		"--x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=b.pdf\r\n\r\nsecond\r\n--x--\r\n"
	type want struct{ part, filename, content string }
	messages := []struct {
		mail string
		set  map[string]string
		want []want
	}{
		{"Subject: pdf\r\nMIME-Version: 1.0\r\nContent-Type: application/pdf; name=root.pdf\r\n\r\nall of it", nil, []want{{"0", "root.pdf", "all of it"}}},
		{"Subject: same\r\n" + two, map[string]string{"payload.parts.1.partId": `"0"`}, []want{{"0", "a.pdf", "first"}, {"0-2", "b.pdf", "second"}}},
		{"Subject: empty\r\n" + two, map[string]string{
			"payload.parts.0.body": `{"size":0,"data":""}`, "payload.parts.1.body": `{"size":0}`,
			"payload.parts.2": `{"partId":"2","filename":"c.txt","body":{"size":5,"data":"aGVs\r\nbG8"}}`}, []want{{"0", "a.pdf", ""}, {"1", "b.pdf", ""}, {"2", "c.txt", "hello"}}},
		{"Subject: answered with nothing\r\n" + two, nil, []want{{"0", "a.pdf", ""}, {"1", "b.pdf", ""}}},
		{"Subject: sizes that cannot be\r\n" + two, map[string]string{"sizeEstimate": "-5", "payload.parts.0.body.size": "-3",
			"payload.parts.1.body": `{"size":-1}`}, []want{{"0", "a.pdf", "hello"}, {"1", "b.pdf", ""}}},
	}
	var ids []string
	for _, m := range messages {
		id := box.Add([]byte(m.mail))
		ids = append(ids, id)
		if m.set == nil {
			continue
		}
		if err := r.fake.AddFault(set(methodGet, id, m.set)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.fake.AddFault(fault.Fault{Method: methodAttachment, ID: ids[3], Body: `{"size":0}`}); err != nil {
		t.Fatal(err)
	}
	if err := r.fake.AddFault(fault.Fault{Method: methodAttachment, ID: ids[4], Body: `{"size":-1,"data":"aGVsbG8"}`}); err != nil {
		t.Fatal(err)
	}
	a := r.run(app.RoleScheduler, app.RoleWorker, app.RoleWeb)
	s := r.open()
	if job, _ := r.filtered(s, jobs.Filter{Format: jobs.FormatFull}); job.State != jobs.Completed || job.Failures != 0 || job.Requeued != 0 {
		t.Fatalf("backfill = %+v, want it to come to its end without a failure", job)
	}
	for i, m := range messages {
		path := "/accounts/" + ann + "/messages/" + ids[i] + "/attachments"
		all := read[api.Page[jobs.Attachment]](t, r.call(a, http.MethodGet, path, nil)).Items
		if len(all) != len(m.want) {
			t.Errorf("message %d has %+v, want %+v", i, all, m.want)
			continue
		}
		for j, want := range m.want {
			got, text := all[j], string(r.content(s, ids[i], want.part))
			if got.Part != want.part || got.Filename != want.filename || got.SHA256 != sha([]byte(want.content)) || got.Size != int64(len(want.content)) || text != want.content {
				t.Errorf("attachment %d of message %d is %+v and holds %q, want %+v", j, i, got, text, want)
			}
			if want.content == "" && got.SHA256 != nothing {
				t.Errorf("an empty attachment has the SHA-256 %s", got.SHA256)
			}
			down := r.call(a, http.MethodGet, path+"/"+want.part, nil)
			if down.status != http.StatusOK || down.body != want.content || down.header.Get("ETag") != `"`+got.SHA256+`"` || down.header.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("download of %+v: %+v", want, down)
			}
		}
	}
	path := "/accounts/" + ann + "/messages/" + ids[0] + "/attachments/7"
	if got := r.call(a, http.MethodGet, path, nil); got.status != http.StatusNotFound {
		t.Errorf("%s: %+v", path, got)
	}
}
