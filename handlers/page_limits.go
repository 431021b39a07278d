package handlers

import (
	"math"
	"strconv"
	"strings"

	"holdfast/journal"
)

// formLimits reads the limits that a form names; nil: none. Hours may have a
// part. Code: unprocessable, naming the field.
func formLimits(f form) (*journal.Limits, error) {
	var l journal.Limits
	for name, into := range map[string]*int64{"wall_s": &l.WallS, "tokens": &l.Tokens} {
		if err := formNumber(f, name, into); err != nil {
			return nil, err
		}
	}
	var steps int64
	if err := formNumber(f, "steps", &steps); err != nil {
		return nil, err
	}
	l.Steps = int(min(steps, 1<<31-1))
	var hours float64
	if err := formDecimal(f, "wall_h", &hours); err != nil {
		return nil, err
	}
	if hours > 0 {
		l.WallS = int64(math.Ceil(min(hours, 1<<30) * 3600))
	}
	if err := formDecimal(f, "cost_usd", &l.CostUSD); err != nil {
		return nil, err
	}
	if l == (journal.Limits{}) {
		return nil, nil //nolint:nilnil // no limits are a wish too: all stays as it is
	}
	return &l, l.Check()
}

func formDecimal(f form, name string, into *float64) error {
	raw := f.word(name)
	if raw == "" {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Replace(raw, ",", ".", 1), 64)
	if err != nil || !(v > 0) || v > 1e12 {
		return badLimit(name)
	}
	*into = v
	return nil
}

func formNumber(f form, name string, into *int64) error {
	raw := f.word(name)
	if raw == "" {
		return nil
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || n < 1 {
		return badLimit(name)
	}
	*into = n
	return nil
}

func badLimit(name string) error {
	return journal.Errorf(journal.Unprocessable, "%s must be a number above 0. Nothing was recorded.", limitNames[name]).Typed("bad-limit").With("field", name)
}

// limitNames are the fields of limits, for people.
var limitNames = map[string]string{
	"steps": "The number of steps", "wall_s": "The seconds of running time", "wall_h": "The hours of running time", "tokens": "The number of tokens", "cost_usd": "The cost in US dollars",
}
