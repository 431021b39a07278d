package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// The code in a message stands as code, and all of it as it was written.
func TestEntries_CodeInAMessage(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"# Say\n\n```sh\necho a\n```\nthen":      "```sh\necho a\n```\n",
		"~~~~\n~~~\nx\n~~~~\n":                   "~~~~\n~~~\nx\n~~~~\n",
		"```\nnever closed\n\nstill":             "```\nnever closed\n\nstill",
		"``two`` and a ` alone":                  "",
		"```sh\na\n```\nb\n```sh\n<i>c</i>\n```": "```sh\na\n```\n|```sh\n<i>c</i>\n```",
	} {
		w := window(t, &journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue})
		w.Texts["inp_1"] = message
		prose := render(t, components.JournalRow(components.Entries(w)[0], now)).Find(".prose")
		var got []string
		for _, code := range prose.Find("code.fence").EachIter() {
			got = append(got, code.Text())
		}
		if strings.Join(got, "|") != want || prose.Text() != message {
			t.Errorf("%q: the code is %q in %q", message, got, prose.Text())
		}
	}
}
