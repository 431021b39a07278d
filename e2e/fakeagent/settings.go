package main

import (
	"encoding/json"
	"slices"

	"holdfast/runner/acp/wire"
)

// settings are the members of a session's opening that say what can be set.
type settings map[string]json.RawMessage

// set changes a setting of this process, and answers as its way of ACP has it.
func (a *agent) set(m wire.Message) {
	switch m.Method {
	case wire.MethodSetMode:
		p, err := wire.Decode[wire.SetModeParams](m.Params)
		ids := func(one map[string]any) any { return one["id"] }
		a.legacy(m, err == nil && a.has.choose("modes", "availableModes", "currentModeId", p.ModeID, ids))
	case wire.MethodSetModel:
		p, err := wire.Decode[wire.SetModelParams](m.Params)
		ids := func(one map[string]any) any { return one["modelId"] }
		a.legacy(m, err == nil && a.has.choose("models", "availableModels", "currentModelId", p.ModelID, ids))
	case wire.MethodSetConfigOption:
		var p wire.SetConfigParams
		err := json.Unmarshal(m.Params, &p)
		if a.has["configOptions"] == nil {
			a.result(m.ID, struct{}{})
			return
		}
		if err != nil || !a.has.config(p) {
			a.refuse(m, wire.CodeInvalidParams, "that can't be set")
			return
		}
		a.result(m.ID, map[string]json.RawMessage{"configOptions": a.has["configOptions"]})
	}
}

func (a *agent) legacy(m wire.Message, ok bool) {
	if !ok {
		a.refuse(m, wire.CodeInvalidParams, "that can't be set")
		return
	}
	a.result(m.ID, struct{}{})
}

// choose sets the current one of a list, if it is in it. Without a list all are.
func (s settings) choose(member, list, current, value string, id func(map[string]any) any) bool {
	var has map[string]any
	if s[member] == nil || json.Unmarshal(s[member], &has) != nil {
		return true
	}
	offered, _ := has[list].([]any)
	if !slices.ContainsFunc(offered, func(one any) bool {
		o, ok := one.(map[string]any)
		return ok && id(o) == value
	}) {
		return false
	}
	has[current] = value
	s[member] = encoded(has)
	return true
}

// config sets a config option: any value of one without choices.
func (s settings) config(p wire.SetConfigParams) bool {
	var list []map[string]any
	if json.Unmarshal(s["configOptions"], &list) != nil {
		return false
	}
	i := slices.IndexFunc(list, func(o map[string]any) bool { return o["id"] == p.ConfigID })
	if i < 0 {
		return false
	}
	choices, _ := list[i]["options"].([]any)
	if len(choices) > 0 && !slices.ContainsFunc(choices, func(one any) bool {
		o, ok := one.(map[string]any)
		return ok && o["value"] == p.Value
	}) {
		return false
	}
	list[i]["currentValue"] = p.Value
	s["configOptions"] = encoded(list)
	return true
}
