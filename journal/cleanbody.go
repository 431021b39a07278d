package journal

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Typed cleans what a value of this package, or one that is answered with, was encoded
// to, such as the body of an event. A member with the tag mask:"-" is the server's own.
// Names of members, ids that this server makes, digests and the words of
// enumerations are left alone, since what is folded and projected goes by them: a
// secret that is one of them, or a part, would break the session. In JSON that others
// made all is cleaned, except in the members of the value that are named: this server
// made those.
func (c *Cleaner) Typed(of any, data []byte, made ...string) ([]byte, error) {
	t := reflect.TypeOf(of)
	return c.parsed(data, func(v any) (any, bool) { return c.typed(v, t, made) })
}

var (
	textType = reflect.TypeFor[Text]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	textKind = reflect.TypeFor[string]()
)

// typed cleans what a value of a type was encoded to.
func (c *Cleaner) typed(v any, t reflect.Type, made []string) (clean any, changed bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == textType:
		if s, inline := v.(string); inline {
			return c.value(s)
		}
		return v, false // a digest
	case t == rawType || t.Kind() == reflect.Interface:
		return c.value(v)
	case t == textKind:
		return c.value(v)
	}
	switch v := v.(type) {
	case []any:
		return v, each(v, func(w any) (any, bool) { return c.typed(w, t.Elem(), nil) })
	case map[string]any:
		if t.Kind() == reflect.Map {
			return c.members(v, func(string) bool { return false }, func(_ string, w any) (any, bool) { return c.typed(w, t.Elem(), nil) })
		}
		fields := fieldsOf(t)
		return c.members(v, func(string) bool { return true }, func(name string, w any) (any, bool) {
			s, isText := w.(string)
			if fields[name] == nil || slices.Contains(made, name) || isText && slices.Contains(ownWords, s) {
				return w, false
			}
			return c.typed(w, fields[name], nil)
		})
	}
	return v, false // a number, or a word of an enumeration, whose type has a name
}

// ownWords stand in members that hold other texts, too, and are gone by.
var ownWords = []string{ReasonInterrupted, ReasonRejected, ReasonNotStarted, ReasonNotTold, OptionThought}

// ownMembers are those of type string that hold what this server has chosen, beside
// ids and digests.
var ownMembers = []string{"by", "continues", "digest", "key", "limit", "outcome", "pid_namespace", "role", "scope", "signal", "stream"}

// ownIDs are the types whose member id is of this server's making; the settings of
// agents have ids of the agents'.
var ownIDs = []reflect.Type{
	reflect.TypeFor[AllowedBy](), reflect.TypeFor[CredentialUse](), reflect.TypeFor[PermissionAsked](), reflect.TypeFor[PermissionReplied](), reflect.TypeFor[PermissionCancelled](),
}

var fieldsByType sync.Map

// fieldsOf gives the types of a struct's members that are to be cleaned, by name.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.Tag.Get("mask") != "-" && !own(t, name) {
			out[name] = f.Type
		}
	}
	fieldsByType.Store(t, out)
	return out
}

// own reports whether what a member holds is of this server's making.
func own(t reflect.Type, name string) bool {
	switch {
	case name == "agent_session_id": // the agent's
		return false
	case strings.HasSuffix(name, "_id"), strings.HasSuffix(name, "_sha256"), slices.Contains(ownMembers, name):
		return true
	case name == "id":
		return slices.Contains(ownIDs, t)
	case name == "type":
		return t == reflect.TypeFor[Evidence]()
	case name == "permission":
		return t == reflect.TypeFor[PermissionAsked]() || t == reflect.TypeFor[Rule]()
	case name == "action":
		return t == reflect.TypeFor[Rule]()
	}
	return false
}
