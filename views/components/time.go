package components

import (
	"fmt"
	"time"
)

// ISO is a time for machines: RFC 3339, UTC, milliseconds.
func ISO(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Stamp is a time for people, as short as the day allows: 13:22 today, 29 Nov
// 13:22 this year, else with the year. Seconds are for the journal.
func Stamp(ms, now int64, seconds bool) string {
	t, n := time.UnixMilli(ms).UTC(), time.UnixMilli(now).UTC()
	clock := "15:04"
	if seconds {
		clock = "15:04:05"
	}
	switch {
	case t.Year() != n.Year():
		return t.Format("2 Jan 2006 " + clock)
	case t.YearDay() != n.YearDay():
		return t.Format("2 Jan " + clock)
	}
	return t.Format(clock)
}

// Took is a duration for people: 4.1 s, 45 s, 3 h 8 min, 2 d 4 h. The clock of
// the server is the only one, so nothing is negative.
func Took(ms int64) string {
	s := max(ms, 0) / 1000
	switch {
	case ms < 0:
		return "0 s"
	case ms < 100:
		return "less than 0.1 s"
	case ms < 10_000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 24*3600:
		return two(s/3600, "h", s%3600/60, "min")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}

// Ago is a duration without tenths, for what is long past or just now.
func Ago(ms int64) string {
	if ms < 10_000 {
		return fmt.Sprintf("%d s", max(ms, 0)/1000)
	}
	return Took(ms)
}

func two(a int64, au string, b int64, bu string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, au)
	}
	return fmt.Sprintf("%d %s %d %s", a, au, b, bu)
}
