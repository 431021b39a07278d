package acp

import (
	"testing"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// The three ways of ACP are one list, in which nothing stands twice; what can't be
// set here, or isn't told, isn't made up.
func TestProbe_Offers(t *testing.T) {
	t.Parallel()
	const modes = `"modes":{"currentModeId":"b","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}`
	const models = `"models":{"currentModelId":"m","availableModels":[{"modelId":"m","name":"M"}]}`
	for name, c := range map[string]struct{ result, want string }{
		"nothing":                   {`null`, ""},
		"the old ways":              {`{` + modes + `,` + models + `}`, "model/model=m(1) mode/mode=b(2)"},
		"the new way":               {`{"configOptions":[{"id":"x","name":"X","category":"mode","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}`, "x/config=a(1)"},
		"both":                      {`{"configOptions":[{"id":"x","category":"mode","type":"select","currentValue":"a","options":[]}],` + modes + `,` + models + `}`, "x/config=a(0) model/model=m(1)"},
		"an id that is":             {`{"configOptions":[{"id":"mode","type":"boolean","currentValue":true}],` + modes + `}`, "mode/config=true(0)"},
		"groups":                    {`{"configOptions":[{"id":"x","type":"select","currentValue":"b","options":[{"name":"G","options":[{"value":"a"},{"value":"b"}]}]}]}`, "x/config=b(2)"},
		"of another type":           {`{"configOptions":[{"id":"x","type":"slider","currentValue":3}]}`, ""},
		"a value untold":            {`{"configOptions":[{"id":"x","type":"boolean","currentValue":null},{"id":"y","type":"select","currentValue":7}]}`, "x/config=(0) y/config=(0)"},
		"ids that can't be kept":    {`{"configOptions":[{"id":"x\u0000","type":"boolean","currentValue":true},{"id":"y","type":"select","currentValue":"a\u0000","options":[{"value":"a"},{"value":"a\u0000"},{"value":"\ud800"}]}]}`, "y/config=(1)"},
		"a value twice":             {`{"configOptions":[{"id":"y","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"a","name":"B"}]}]}`, "y/config=a(1)"},
		"a mode that can't be kept": {`{"modes":{"currentModeId":"b\u0000","availableModes":[{"id":"b","name":"A"},{"id":"b\u0000","name":"B"}]}}`, "mode/mode=(1)"},
		"one without an id":         {`{"configOptions":[{"id":"","type":"boolean","currentValue":true}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := wire.Decode[wire.SessionState](wire.Kept([]byte(c.result)))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, o := range (Probe{Session: st}).Offers() {
				got += " " + describe(o)
			}
			if want := c.want; got != "" && got[1:] != want || got == "" && want != "" {
				t.Errorf("offers%s, want %s", got, want)
			}
		})
	}
}

func describe(o journal.AgentOption) string {
	return o.ID + "/" + string(o.Source) + "=" + o.Current + "(" + string(rune('0'+len(o.Choices))) + ")"
}
