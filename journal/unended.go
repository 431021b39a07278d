package journal

import (
	"strings"
	"unicode/utf8"
)

// A text may be told again and again while it grows: the title of a call, say. Each
// telling but the last ends in the middle of what is still to come, maybe of a secret.

// closers may stand behind the end of a text that grows, as quotes do. There are few.
const (
	closers     = "`'\"…)]}>*_.,;:| \t\r\n"
	mostClosers = 8
)

// Unended is Text for a text that may go on elsewhere: what begins a secret at its end is
// masked too, also if quotes and the like stand behind it. A beginning of fewer than eight
// characters, and of less than half of a short secret, stays: it is common to many, and to
// ordinary words.
func (c *Cleaner) Unended(s string) string {
	s = c.Text(s)
	known := c.now()
	for end, n := s, 0; end != "" && n <= mostClosers; n++ {
		if at := known.longStart(end); at < len(end) {
			return s[:at] + Hidden + s[len(end):]
		}
		r, size := utf8.DecodeLastRuneInString(end)
		if !strings.ContainsRune(closers, r) {
			break
		}
		end = end[:len(end)-size]
	}
	return s
}

// LongStart is SecretStart for beginnings that are long enough to be masked where a text ends.
func LongStart(text string, secrets []string) int {
	k := &known{secrets: secrets}
	for _, s := range secrets {
		k.least = append(k.least, leastStart(s))
	}
	return k.longStart(text)
}

// longStart is SecretStart for beginnings that are long enough to be masked.
func (k *known) longStart(text string) int {
	first := len(text)
	for i, s := range k.secrets {
		for n := min(len(s)-1, len(text)); n > len(text)-first && n >= k.least[i]; n-- {
			if s[n-1] == text[len(text)-1] && strings.HasSuffix(text, s[:n]) {
				first = len(text) - n
				break
			}
		}
	}
	return first
}

// leastStart is how many bytes the shortest beginning of a secret has that is masked.
func leastStart(secret string) int {
	least := tooLong(secret)
	for i := range secret {
		if least == 0 {
			return i
		}
		least--
	}
	return len(secret)
}

// tooLong is how many characters a piece of a secret has, at its beginning or its end,
// that is too long to be shown.
func tooLong(secret string) int {
	return min(ShortestSecret, (utf8.RuneCountInString(secret)+1)/2)
}
