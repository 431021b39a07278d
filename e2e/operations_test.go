package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// The Markdown of a session by the command line, beside a running server.
func TestE2E_ExportMarkdown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission("# Say it\n\n" + steps("printf 'said: %s\\n' '```' '# not a heading'"))
		s.untilQuiet(id, "ready")
		db := w.sql()
		before := w.db.RowCounts(t, db)
		md := w.mustRun("", "export", id, "--format", "md")
		if after := w.db.RowCounts(t, db); !maps.Equal(before, after) {
			t.Errorf("export wrote: %v, before %v", after, before)
		}
		j := s.events(id)
		if !strings.HasPrefix(md, "---\nsession: \""+id+"\"\n") || !strings.Contains(md, fmt.Sprintf("\nlast_entry: %d\n", j.last())) {
			t.Errorf("it begins\n%.600s", md)
		}
		for _, want := range []string{"\n## Mission\n\n````text\n# Say it\n", "None. Every operation has a recorded result.", "\n````text\nsaid: ```\nsaid: # not a heading\n````\n", fmt.Sprintf("\n%d. `%s`", j.last(), j[len(j)-1].Kind)} {
			if !strings.Contains(md, want) {
				t.Errorf("%q isn't in it:\n%s", want, tail(md, 6000))
			}
		}
		if o := w.run("", "export", id, "--format", "pdf"); o.code != 2 {
			t.Errorf("another format: exit %d: %s", o.code, o.err)
		}
	})
}
