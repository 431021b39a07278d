package handlers

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
)

// Sizes of lists (docs: http).
const (
	listDefault   = 20
	listMax       = 100
	eventsDefault = 500
	eventsMax     = 1000
)

// pathID gives an id of the path, with its prefix ("ses"). What can't be an id
// is not found, like one that doesn't exist: it never reaches the database.
func pathID(c *fiber.Ctx, name, prefix string) (string, error) {
	id := c.Params(name)
	rest, ok := strings.CutPrefix(id, prefix+"_")
	ok = ok && rest != "" && len(rest) <= 64
	for _, r := range rest {
		ok = ok && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z')
	}
	if !ok {
		return "", journal.Errorf(journal.NotFound, "There is nothing under this id, or it is not shared with you.")
	}
	return id, nil
}

// pathText gives a percent-encoded part of the path as text. Code: invalid.
func pathText(c *fiber.Ctx, name string) (string, error) {
	s, err := url.PathUnescape(c.Params(name))
	if err != nil {
		return "", badParam(name, "isn't percent-encoded as it should be")
	}
	return s, nil
}

func badParam(name, what string) error {
	return journal.Errorf(journal.Invalid, "%s %s.", name, what).Typed("bad-parameter").With("parameter", name)
}

// queryText gives a parameter of the query, "" if it is missing. Code: invalid.
func queryText(c *fiber.Ctx, name string) (string, error) {
	s := c.Query(name)
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > 1000 {
		return "", badParam(name, "must be at most 1000 bytes of UTF-8 without NUL")
	}
	return s, nil
}

// queryInt gives a number of the query from 0 on, or otherwise if it is missing. Code: invalid.
func queryInt(c *fiber.Ctx, name string, otherwise int64) (int64, error) {
	if !c.Context().QueryArgs().Has(name) {
		return otherwise, nil
	}
	return parseNumber(name, c.Query(name))
}

func parseNumber(name, raw string) (int64, error) {
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || n < 0 || raw[0] == '+' {
		return 0, badParam(name, "must be a whole number from 0 on")
	}
	return n, nil
}

// queryLimit gives how many are asked for, never more than most. Code: invalid.
func queryLimit(c *fiber.Ctx, otherwise, most int64) (int, error) {
	n, err := queryInt(c, "limit", otherwise)
	if err == nil && n == 0 {
		err = badParam("limit", "must be at least 1")
	}
	return int(min(n, most)), err
}

// queryWait gives how long a long poll may wait; longer than a minute is a minute. Code: invalid.
func queryWait(c *fiber.Ctx) (time.Duration, error) {
	raw := c.Query("wait")
	if raw == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d < 0 {
		return 0, badParam("wait", "must be a time such as 30s")
	}
	return min(d, time.Minute), nil
}

// onlyHeader gives a header of which there can be one value; "" if it is missing.
// Two that differ don't say which counts, and a proxy may see another one than we
// do. Code: invalid.
func onlyHeader(c *fiber.Ctx, name string) (string, error) {
	all := c.Request().Header.PeekAll(name)
	if len(all) == 0 {
		return "", nil
	}
	first := string(all[0])
	for _, v := range all[1:] {
		if string(v) != first {
			return "", journal.Errorf(journal.Invalid, "The header %s is there more than once, with different values. Nothing was recorded. Send it once.", name).Typed("header-repeated").With("header", name)
		}
	}
	return first, nil
}

const keyHeader = "Idempotency-Key"

// apiKey gives the Idempotency-Key of a request that needs one (ADM-2). Code: invalid.
func apiKey(c *fiber.Ctx) (string, error) {
	key, err := onlyHeader(c, keyHeader)
	if err != nil {
		return "", err
	}
	return journal.CheckKey(key)
}

// optionalKey gives it where it may be missing.
func optionalKey(c *fiber.Ctx) (string, error) {
	key, err := onlyHeader(c, keyHeader)
	if err != nil || key == "" {
		return "", err
	}
	return journal.CheckKey(key)
}
