package main

import (
	"errors"
	"testing"

	"github.com/alecthomas/kong"
)

// parse reads a command line as main does, with the values of a configuration file.
func parse(t *testing.T, file map[string]any, args ...string) (cli, error) {
	t.Helper()
	var c cli
	parser, err := kong.New(&c, kong.Name("holdfast"), kong.Resolvers(resolver(file)), kong.Vars{"version": "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return c, err
}

// A flag counts before the environment, the environment before the file, the
// file before the default.
func TestConfig_Precedence(t *testing.T) {
	t.Setenv("HOLDFAST_BURST", "7")
	t.Setenv("HOLDFAST_MAX_RUNNING", "3")
	file := map[string]any{"addr": "127.0.0.1:1", "burst": int64(9), "max-running": int64(5), "workspaces": []any{"a", "b"}}
	c, err := parse(t, file, "serve", "--max-running=2")
	if err != nil {
		t.Fatal(err)
	}
	if c.Serve.MaxRunning != 2 {
		t.Errorf("max-running %d, want the flag's 2", c.Serve.MaxRunning)
	}
	if c.Serve.Burst != 7 {
		t.Errorf("burst %d, want the environment's 7", c.Serve.Burst)
	}
	if c.Serve.Addr != "127.0.0.1:1" || len(c.Serve.Workspaces) != 2 {
		t.Errorf("addr %q, workspaces %q, want the file's", c.Serve.Addr, c.Serve.Workspaces)
	}
	if c.Serve.Rate != 50 {
		t.Errorf("rate %g, want the default", c.Serve.Rate)
	}
}

func TestConfig_UnknownKey(t *testing.T) {
	t.Parallel()
	if _, err := parse(t, map[string]any{"adr": "127.0.0.1:1"}, "serve"); err == nil {
		t.Error("a key that is no flag was taken")
	}
}

// An address that isn't one would leave cookies without Secure, and make links that lead nowhere.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"": true, "https://agents.example": true, "https://agents.example/": true, "http://10.0.0.1:8080": true, "https://[::1]:8443": true, "HTTPS://Agents.Example": true,
		"agents.example": false, "agents.example:443": false, "//agents.example": false, "https://": false, "https://:443": false, "ftp://agents.example": false,
		"javascript:alert(1)": false, "javascript://agents.example/%0aalert(1)": false, "https://agents.example/holdfast": false, "https://agents.example/#": false, "https://agents.example/?a=b": false, "https://ann@agents.example": false, "https://agents example": false,
	} {
		c, err := parse(t, nil, "serve", "--public-url", address)
		if err != nil {
			t.Fatal(err)
		}
		var usage usageError
		if err := c.Serve.check(); errors.As(err, &usage) == want || (err == nil) != want {
			t.Errorf("%q: got %v, taken should be %v", address, err, want)
		}
		for _, command := range []string{"add", "link"} { // kong asks before anything is done
			if _, err := parse(t, nil, "user", command, "a@b.example", "--public-url", address); (err == nil) != want {
				t.Errorf("user %s with %q: got %v, taken should be %v", command, address, err, want)
			}
		}
	}
}
