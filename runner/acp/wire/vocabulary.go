package wire

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Names are the names of members that this package knows, and with them _meta.
func Names() map[string]bool {
	out := map[string]bool{"_meta": true}
	seen := map[reflect.Type]bool{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[outgoing](), reflect.TypeFor[Error](), reflect.TypeFor[CancelRequestParams](),
		reflect.TypeFor[InitializeParams](), reflect.TypeFor[InitializeResult](), reflect.TypeFor[ListParams](), reflect.TypeFor[DeleteParams](),
		reflect.TypeFor[SessionParams](), reflect.TypeFor[NewSessionResult](), reflect.TypeFor[SetConfigParams](), reflect.TypeFor[SetModeParams](),
		reflect.TypeFor[SetConfigResult](), reflect.TypeFor[SetModelParams](), reflect.TypeFor[PromptParams](), reflect.TypeFor[PromptResult](),
		reflect.TypeFor[CancelParams](), reflect.TypeFor[PermissionParams](), reflect.TypeFor[PermissionResult](), reflect.TypeFor[UnknownUpdate](),
		reflect.TypeFor[Update](),
	} {
		names(t, out, seen)
	}
	for _, name := range []string{"sessionId", "update", "requestId"} { // read without a type
		out[name] = true
	}
	return out
}

// names collects the names of the members of a type, and of what they hold.
func names(t reflect.Type, out map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if seen[t] {
		return
	}
	seen[t] = true
	if u, ok := unions[t]; ok {
		out[u.tag] = true
		for _, kind := range u.kinds {
			names(kind, out, seen)
		}
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out[name] = true
		}
		names(f.Type, out, seen)
	}
}

// Words are the words that the protocol gives a meaning, by the member whose value they
// are. An id of an option is often the kind of it.
func Words() map[string][]string {
	options := []string{AllowOnce, AllowAlways, RejectOnce, RejectAlways}
	tools := []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
	return map[string][]string{
		"jsonrpc": {"2.0"},
		"method": {
			MethodInitialize, MethodAuthenticate, MethodSessionNew, MethodSessionLoad, MethodSessionResume, MethodSessionList, MethodSessionDelete,
			MethodSessionPrompt, MethodSessionCancel, MethodSetMode, MethodSetConfigOption, MethodSetModel, MethodSessionUpdate, MethodRequestPermission, MethodCancelRequest,
		},
		"sessionUpdate": slices.Sorted(maps.Keys(updates.kinds)),
		"type":          slices.Concat(slices.Sorted(maps.Keys(blocks.kinds)), slices.Sorted(maps.Keys(toolContents.kinds)), []string{"select", "boolean"}),
		"status":        {"pending", "in_progress", "completed", "failed", OutcomeCancelled},
		"priority":      {"high", "medium", "low"},
		"stopReason":    {StopEndTurn, StopMaxTokens, StopMaxTurnRequests, StopRefusal, StopCancelled},
		"kind":          slices.Concat(tools, options),
		"optionId":      options,
		"outcome":       {OutcomeSelected, OutcomeCancelled},
		"category":      {"mode", "model", "model_config", "thought_level"},
	}
}

// Open are the members in which anything may stand.
func Open() map[string]bool {
	return map[string]bool{"rawInput": true, "rawOutput": true, "_meta": true, "data": true}
}

// Whole are the members whose texts don't end in the middle of what is told again: ids,
// which are told back, and the text of blocks, of which several may be one text.
func Whole() map[string]bool {
	out := map[string]bool{"text": true}
	for name := range Names() {
		if strings.HasSuffix(name, "Id") || slices.Contains([]string{"id", "method", "value", "currentValue"}, name) {
			out[name] = true
		}
	}
	return out
}
