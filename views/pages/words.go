package pages

import "strconv"

// count is a small number as a word.
func count(n int) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	if n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}

// beside puts words behind what they say more of, if there are any.
func beside(words string) string {
	if words == "" {
		return ""
	}
	return ", " + words
}
