package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// The pages and exports of a call whose input is so long that it lies in a blob say what
// it is, as of a short one: never what stands in the input's place. The export as JSON has
// every text that its entries refer to.
//
// proves JRN-6 RDR-1 PER-2
func TestPages_ShowALongInput(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		att, call, ask := attempt(t, w, r), store.NewID("call"), store.NewID("per")
		long := func(title, path string) []byte {
			return []byte(`{"title":"` + title + `","kind":"edit","input":{"filePath":"` + path + `","content":"` + strings.Repeat("x", 50_000) + `"}}`)
		}
		in, other := long("Write f.txt", "f.txt"), long("Write passwd", "/etc/passwd")
		own := ownCall(r, att, call, "edit", string(in))
		storetest.MustAppend(t, w.store, r.Claim, "", own, askFor(ask, own, "Write f.txt", false))
		if _, err := w.store.Decide(t.Context(), r.Owner, ask, store.Decision{Reply: journal.ReplyOnce, Digest: "d1"}); err != nil {
			t.Fatal(err)
		}
		storetest.MustAppend(t, w.store, r.Claim, "",
			&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByPerson, ID: r.Owner}},
			&journal.CallContradicted{CallID: call, Late: journal.LateDispatched, InputSHA256: journal.Hash(string(other)), Input: other},
			&journal.CallDescribed{CallID: call, Late: journal.LateDispatched, InputSHA256: journal.Hash(string(in)), Input: in})
		b := w.tab(t, w.alice)
		for path, want := range map[string]string{
			"/sessions/" + r.Session: "The agent says something else of its call now: Write passwd", "/permissions/" + ask: "Write f.txt", "/calls/" + call: "Write passwd",
		} {
			text := squeeze(b.open(path).page().want(http.StatusOK).doc.Find("main").Text())
			if !strings.Contains(text, want) || strings.Contains(text, `"blob"`) || strings.Contains(text, "not at hand") {
				t.Errorf("%s says %.2000q, want %q", path, text, want)
			}
		}
		_, body := w.markdown(t, r.Session)
		calls := body[strings.Index(body, "## Commands run"):strings.Index(body, "## Journal")]
		if !strings.Contains(calls, "Write f.txt") || !strings.Contains(calls, "Write passwd") || strings.Contains(calls, `"blob"`) {
			t.Errorf("the export as Markdown says %.2000s", calls)
		}
		var out struct {
			Blobs []blobJSON `json:"blobs"`
		}
		if err := json.Unmarshal(w.do(t, get, "/api/v1/sessions/"+r.Session+"/export", as(w.alice)).body, &out); err != nil {
			t.Fatal(err)
		}
		texts := map[string]bool{}
		for _, blob := range out.Blobs {
			texts[*blob.Text] = true
		}
		if len(out.Blobs) != 2 || !texts[string(in)] || !texts[string(other)] {
			t.Errorf("the export has %d blobs", len(out.Blobs))
		}
	})
}
