package pages

import "fmt"

func (p CallOutput) at(offset int64) string {
	return fmt.Sprintf("/calls/%s/output?offset=%d", p.Call.ID, offset)
}

func (p CallOutput) download() string { return "/calls/" + p.Call.ID + "/output?download=1" }
