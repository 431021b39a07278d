package handlers

import "holdfast/journal"

type resolution struct {
	Outcome  journal.Verdict `json:"outcome"`
	By       string          `json:"by"`
	At       string          `json:"at"`
	Evidence string          `json:"evidence"`
}

func resolutionJSON(r *journal.Resolution) *resolution {
	if r == nil {
		return nil
	}
	return &resolution{r.Outcome, r.By, timeJSON(r.At), r.Evidence}
}
