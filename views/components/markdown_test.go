package components_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/views/components"
)

func TestMarkdown(t *testing.T) {
	t.Parallel()
	link := func(to, text string) string { return `<a href="` + to + `" rel="nofollow noopener">` + text + `</a>` }
	for name, tt := range map[string]struct{ in, want string }{
		"plain":             {"one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"},
		"inline":            {"*a* **b** `c` ~~d~~", "<p><em>a</em> <strong>b</strong> <code>c</code> <del>d</del></p>"},
		"headings":          {"# a\n## b\n### c\n###### d", "<h4>a</h4><h5>b</h5><h6>c</h6><h6>d</h6>"},
		"lists":             {"- a\n- b\n\n3. c", `<ul><li>a</li><li>b</li></ul><ol start="3"><li>c</li></ol>`},
		"quote and rule":    {"> a\n\n---", "<blockquote><p>a</p></blockquote><hr>"},
		"table":             {"|a|b|\n|-|:-:|\n|1|2|", "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"},
		"code":              {"```go\nx := \"<b>\"\n```", "<pre><code class=\"language-go\">x := &#34;&lt;b&gt;&#34;</code></pre>"},
		"code, evil name":   {"```js\" onclick=\"x\n1\n```", "<pre><code>1</code></pre>"},
		"a fence unended":   {"```\ncut", "<pre><code>cut</code></pre>"},
		"link":              {"[a](http://x.example/y \"t\") <https://z.example>", "<p>" + link("http://x.example/y", "a") + " " + link("https://z.example", "https://z.example") + "</p>"},
		"mail":              {"[m](mailto:a@b.c) <a@b.c>", "<p>" + link("mailto:a@b.c", "m") + " " + link("mailto:a@b.c", "a@b.c") + "</p>"},
		"reference":         {"[x]\n\n[x]: http://y.example", "<p>" + link("http://y.example", "x") + "</p>"},
		"script link":       {"[b](javascript:alert(1)) <javascript:alert(1)>", "<p>b (javascript:alert(1)) javascript:alert(1)</p>"},
		"hidden script":     {"[e](jav&#x09;ascript:alert(1)) [f](JaVaScRiPt:x)", "<p>e (jav&amp;#x09;ascript:alert(1)) f (JaVaScRiPt:x)</p>"},
		"data link":         {"[d](data:text/html,x)", "<p>d (data:text/html,x)</p>"},
		"links of ours":     {"[c](/settings) [d](//evil.example) [e](src/a.go) [f](#needs)", "<p>c (/settings) d (//evil.example) e (src/a.go) f (#needs)</p>"},
		"quote in a link":   {`[b](http://x.example/"onclick="y)`, "<p>" + link("http://x.example/%22onclick=%22y", "b") + "</p>"},
		"image":             {"![the *plot*](http://x.example/y.png)!", "<p>the <em>plot</em>!</p>"},
		"linked image":      {"[![alt](http://x.example/a.png)](http://y.example)", "<p>" + link("http://y.example", "alt") + "</p>"},
		"markup":            {"<script>alert(1)</script>\n\n<img src=x onerror=alert(1)> <b onclick=x>b</b> Vec<T>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p><p>&lt;img src=x onerror=alert(1)&gt; &lt;b onclick=x&gt;b&lt;/b&gt; Vec&lt;T&gt;</p>"},
		"comment":           {"a <!-- b --> c", "<p>a &lt;!-- b --&gt; c</p>"},
		"acting characters": {"a\u202eb \x1b[31m `\u2066`", `<p>a\u202eb \x1b[31m <code>\u2066</code></p>`},
		"acting in a link":  {"[l](http://x\u202e.example)", `<p>l (http://x\u202e.example)</p>`},
		"acting entities":   {"&#x202e; &#0; &lt;b&gt;", `<p>\u202e ` + "\ufffd" + ` &lt;b&gt;</p>`},
		"a rule of dashes":  {"a\n" + strings.Repeat("- ", 20) + strings.Repeat("-", 200), "<p>a</p><hr>"},
		"cut emoji":         {"a\xf0\x9f", "<p>a\ufffd</p>"},
	} {
		if got := between.ReplaceAllString(markup(t, components.Markdown(tt.in)), "$1$2"); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// between are the newlines that a browser doesn't draw.
var between = regexp.MustCompile(`(>)\n|\n(</code>)`)

// A text that would take long to read, or give a long page, is drawn as it stands.
func TestMarkdown_HostileIsCheap(t *testing.T) {
	for name, in := range map[string]string{
		"brackets": strings.Repeat("[", 16<<10), "links": strings.Repeat("[a](", 4096), "quotes": strings.Repeat(">", 16<<10), "spaced quotes": strings.Repeat("> ", 8192), "lists": strings.Repeat("- ", 8192), "both": strings.Repeat("> - ", 4096),
		"emphasis": strings.Repeat("_a", 8192), "ticks": strings.Repeat("`a``b", 3000), "columns": strings.Repeat("|a", 500) + "\n" + strings.Repeat("|-", 500) + "\n" + strings.Repeat("x\n", 7000), "rows": "|a|b|\n|-|-|\n" + strings.Repeat("|x\n", 4096), "long": strings.Repeat("word ", 2<<20),
	} {
		began := time.Now()
		got := markup(t, components.Markdown(in))
		t.Logf("%-14s %8s of markup, %s", name, components.Bytes(int64(len(got))), time.Since(began).Round(time.Millisecond))
		if len(got) > 512<<10 {
			t.Errorf("%s: %d bytes of markup", name, len(got))
		}
		if strings.Count(got, "<blockquote>") > 100 {
			t.Errorf("%s: %d quotes in each other", name, strings.Count(got, "<blockquote>"))
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a\n[b](http://c)", "<img src=x onerror=y>", "|a|\n|-|\n", "![x](y)", "&#x202e;"} {
		f.Add(s)
	}
	allowed := []string{"html", "head", "body", "p", "br", "hr", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del", "table", "thead", "tbody", "tr", "th", "td", "a"}
	f.Fuzz(func(t *testing.T, s string) {
		doc := render(t, components.Markdown(s).Component())
		doc.Find("*").Each(func(_ int, el *goquery.Selection) {
			if !slices.Contains(allowed, goquery.NodeName(el)) {
				t.Errorf("%q makes a %s", s, goquery.NodeName(el))
			}
			for _, attr := range el.Nodes[0].Attr {
				if href, isLink := el.Attr("href"); attr.Key == "href" && isLink && !regexp.MustCompile(`(?i)^(https?://|mailto:)`).MatchString(href) {
					t.Errorf("%q links to %q", s, href)
				} else if !slices.Contains([]string{"href", "rel", "class", "start"}, attr.Key) {
					t.Errorf("%q makes an attribute %s", s, attr.Key)
				}
			}
		})
		if components.Hides(doc.Text()) {
			t.Errorf("%q: an acting character is drawn", s)
		}
	})
}

// What an agent completed is Markdown; what a person wrote stands as it was written.
func TestEntries_WhoMayFormat(t *testing.T) {
	t.Parallel()
	w := window(t,
		&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartNote, Text: journal.T("**done**")},
		&journal.MessageDelta{MessageID: "msg_2", Part: journal.PartText, Text: journal.T("**half")},
		&journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue})
	w.Writing = map[string]components.Writing{"msg_2/text": {Seq: 2}}
	w.Texts["inp_1"] = "**mine**\n  kept"
	list := components.Entries(w)
	for i, want := range []string{"done", "**half", "**mine**\n  kept"} {
		doc := render(t, components.JournalRow(list[i], now))
		if got := strings.TrimSpace(doc.Find(".prose").Text()); got != want || doc.Find(".prose strong").Length() != map[bool]int{true: 1}[i == 0] {
			t.Errorf("entry %d is drawn as %q, want %q", i+1, got, want)
		}
	}
}
