package journal

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// bounded are members of any form that are never moved into a blob: who makes them bounds
// them.
var bounded = map[Kind]string{KindPermissionAsked: "Metadata"}

// refer puts a reference in each place of a value that may hold one, and counts them.
func refer(t *testing.T, kind Kind, v reflect.Value) (n int) {
	t.Helper()
	ref := Text{Blob: Hash("x"), Bytes: MaxField + 1}
	raw, err := Encode(ref)
	if err != nil {
		t.Fatal(err)
	}
	switch v.Type() {
	case reflect.TypeFor[Text]():
		v.Set(reflect.ValueOf(ref))
		return 1
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes(raw)
		return 1
	}
	if v.Kind() != reflect.Struct {
		return 0
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Name != bounded[kind] {
			n += refer(t, kind, v.Field(i))
		}
	}
	return n
}

// Whatever a body may hold of blobs is named by one function: what checks a journal or
// takes it elsewhere misses none, of any kind.
//
// proves JRN-4 JRN-6
func TestBlobs_OfEveryKind(t *testing.T) {
	t.Parallel()
	referring := map[Kind]bool{}
	for kind, mk := range bodies {
		b := mk()
		want := refer(t, kind, reflect.ValueOf(b).Elem())
		if got := Blobs(b); len(got) != want {
			t.Errorf("%s may hold %d references, and Blobs gives %v", kind, want, got)
		}
		if got := Blobs(mk()); len(got) != 0 {
			t.Errorf("%s holds none, and Blobs gives %v", kind, got)
		}
		referring[kind] = want > 0
	}
	for _, kind := range []Kind{KindPromptAdmitted, KindCallProposed, KindCallDescribed, KindCallContradicted, KindCallOutput} {
		if !referring[kind] {
			t.Errorf("%s holds no reference", kind)
		}
	}
}

// What stands in the place of a long input is none: it reads as nothing, and its call is
// named by its tool. An input that only looks like it has its own digest.
//
// proves JRN-6
func TestInputBlob(t *testing.T) {
	t.Parallel()
	sum := Hash("x")
	ref := `{"blob":"` + sum + `","bytes":40000}`
	for in, want := range map[string]bool{
		ref: true, strings.Replace(ref, ",", ", ", 1): true, // a database may space it
		`{"blob":"` + sum + `"}`: false, `{"blob":"x","bytes":40000}`: false, `{"blob":"` + sum + `","bytes":40000,"title":"x"}`: false,
		`{"title":"x","kind":"edit"}`: false, `[]`: false, ``: false, `"` + sum + `"`: false, `null`: false,
	} {
		if _, got := InputBlob(json.RawMessage(in), "other"); got != want {
			t.Errorf("%s is a reference: %v", in, got)
		}
	}
	if _, got := InputBlob(json.RawMessage(ref), Hash(ref)); got {
		t.Error("an input that looks like a reference is taken for one")
	}
	var told struct{ Title, Kind string }
	c := Call{Tool: "edit", Input: json.RawMessage(ref)}
	if ReadInput(c.Input, &told) || c.Title() != "edit" {
		t.Errorf("a reference is read as %+v, and its call is called %q", told, c.Title())
	}
	if !ReadInput(json.RawMessage(`{"title":"Write"}`), &told) || told.Title != "Write" {
		t.Errorf("an input is read as %+v", told)
	}
	if at, elsewhere := (&Call{Input: json.RawMessage(`{}`), Later: json.RawMessage(ref)}).Elsewhere(); !elsewhere || at.Blob != sum || at.Bytes != 40000 {
		t.Errorf("what was said later lies in %+v, %v", at, elsewhere)
	}
}

// A secret that became known since is taken out of an input that looks like a reference,
// and a reference stays what it is.
//
// proves JRN-8 JRN-6
func TestCleaner_EventsThatRefer(t *testing.T) {
	t.Parallel()
	sum := Hash("x")
	ref := `{"blob":"` + sum + `","bytes":40000}`
	c := NewCleaner([]string{"s3cr3t", sum[:20]})
	for in, want := range map[string]string{ref: ref, `{"blob":"s3cr3t"}`: `{"blob":"` + Hidden + `"}`} {
		data, err := Encode(&CallContradicted{CallID: "call_1", Input: json.RawMessage(in), InputSHA256: "s"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Event(&Event{Kind: KindCallContradicted, Version: 1, Data: data})
		if err != nil || !strings.Contains(string(got), `"input":`+want) {
			t.Errorf("%s leaves as %s, %v", in, got, err)
		}
	}
}
