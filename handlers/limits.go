package handlers

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"holdfast/journal"
	"holdfast/views/pages"
)

// limitFields are the names of the fields, in the order of the form.
var limitFields = []string{"steps", "wall_h", "wall_s", "tokens", "cost_usd"}

// formLimits reads the limits that a form of *continue* raises; nil: none. Hours
// may have a part. Code: unprocessable, naming the field.
func formLimits(f form) (*journal.Limits, error) {
	l, problems := readLimits(f)
	for _, name := range limitFields {
		if err := problems[name]; err != nil {
			return nil, err
		}
	}
	return l, nil
}

// typedLimits are the limits as they were typed.
func typedLimits(f form) []pages.Typed {
	var out []pages.Typed
	for _, name := range limitFields {
		if v := f.word(name); v != "" {
			out = append(out, pages.Typed{Field: pages.Field{Name: name, Value: v}, Label: limitNames[name]})
		}
	}
	return out
}

// readLimits reads what a form says of limits, with what is wrong by field.
func readLimits(f form) (*journal.Limits, map[string]error) {
	var l journal.Limits
	problems := map[string]error{}
	for _, name := range limitFields {
		raw := f.word(name)
		if raw == "" {
			continue
		}
		one, err := readLimit(name, raw)
		if err == nil {
			err = checkLimit(name, one)
		}
		if err != nil {
			problems[name] = err
			continue
		}
		l = l.Raise(&one)
	}
	if l == (journal.Limits{}) {
		return nil, problems
	}
	return &l, problems
}

// limitsInput are the limits that a program gives; what it doesn't give is nil.
type limitsInput struct {
	Steps   *int     `json:"steps"`
	WallS   *int64   `json:"wall_s"`
	Tokens  *int64   `json:"tokens"`
	CostUSD *float64 `json:"cost_usd"`
}

// limits are those that are given; nil: none. Code: unprocessable, naming the member.
func (in *limitsInput) limits() (*journal.Limits, error) {
	if in == nil || *in == (limitsInput{}) {
		return nil, nil //nolint:nilnil // none is what a session has unless it is given some
	}
	var l journal.Limits
	var err error
	check := func(name string, one journal.Limits) {
		err = cmp.Or(err, checkLimit(name, one))
		l = l.Raise(&one)
	}
	if in.Steps != nil {
		check("steps", journal.Limits{Steps: *in.Steps})
	}
	if in.WallS != nil {
		check("wall_s", journal.Limits{WallS: *in.WallS})
	}
	if in.Tokens != nil {
		check("tokens", journal.Limits{Tokens: *in.Tokens})
	}
	if in.CostUSD != nil {
		check("cost_usd", journal.Limits{CostUSD: *in.CostUSD})
	}
	return &l, err
}

// checkLimit refuses a limit that is given and bounds nothing, or makes no sense,
// for forms and programs. Code: unprocessable, naming the field.
func checkLimit(name string, one journal.Limits) error {
	if one == (journal.Limits{}) || one.Check() != nil {
		return badLimit(name)
	}
	return nil
}

// maxHours keeps a time within what is counted in seconds.
const maxHours = 100_000

func readLimit(name, raw string) (journal.Limits, error) {
	var l journal.Limits
	var err error
	switch name {
	case "wall_h", "cost_usd":
		var v float64
		v, err = strconv.ParseFloat(strings.Replace(raw, ",", ".", 1), 64)
		switch {
		case err != nil, math.IsNaN(v), name == "wall_h" && math.Abs(v) > maxHours:
			return l, badLimit(name)
		case name == "cost_usd":
			l.CostUSD = v
		default:
			l.WallS = int64(math.Ceil(v * 3600))
		}
	default:
		var n int64
		n, err = strconv.ParseInt(raw, 10, 64)
		if err != nil {
			return l, badLimit(name)
		}
		switch name {
		case "steps":
			l.Steps = int(max(min(n, 1<<31-1), -1))
		case "wall_s":
			l.WallS = n
		case "tokens":
			l.Tokens = n
		}
	}
	return l, nil
}

func badLimit(name string) error {
	return journal.Errorf(journal.Unprocessable, "%s must be a number above 0. Nothing was recorded.", limitNames[name]).Typed("bad-limit").With("field", name)
}

// limitNames are the fields of limits, for people.
var limitNames = map[string]string{
	"steps": "The number of steps", "wall_s": "The seconds of running time", "wall_h": "The hours of running time", "tokens": "The number of tokens", "cost_usd": "The cost in US dollars",
}
