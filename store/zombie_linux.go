package store

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// zombie reports whether a process has ended and its parent hasn't taken note of it.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// The name, in parentheses, may hold anything. What follows it is the state, and as
	// the 18th the number of threads: a process whose first one has ended may go on.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 17 && fields[0] == "Z" && (fields[17] == "1" || fields[17] == "0")
}
