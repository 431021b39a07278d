package handlers

import (
	"strconv"

	"holdfast/journal"
)

// formLimits reads the limits that a form of *continue* raises; nil: none. Code: unprocessable.
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
	if raw := f.word("cost_usd"); raw != "" {
		cost, err := strconv.ParseFloat(raw, 64)
		if err != nil || !(cost > 0) {
			return nil, badLimit("cost_usd")
		}
		l.CostUSD = cost
	}
	l.Steps = int(min(steps, 1<<31-1))
	if l == (journal.Limits{}) {
		return nil, nil //nolint:nilnil // no limits are a wish too: all stays as it is
	}
	return &l, nil
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
	return refuse("bad-limit", "The limit "+name+" must be a number above 0.")
}
