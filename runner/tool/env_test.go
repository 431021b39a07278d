package tool

import (
	"slices"
	"testing"
)

// proves OWN-3: a command inherits an allow-list and no secrets.
func TestBaseEnv_IsAnAllowList(t *testing.T) {
	t.Parallel()
	got := BaseEnv([]string{
		"PATH=/bin", "HOME=/root", "LC_ALL=C", "LC_API_KEY=k", "LANG=C", "TERM=xterm", "FOO=1",
		"GITHUB_TOKEN=t", "AWS_SECRET=s", "DB_PASSWORD_FILE=f", "HOLDFAST_CALL=other",
		"https_proxy=http://u:p@proxy", "http_proxy=http://proxy", "nonsense",
	})
	want := []string{"PATH=/bin", "HOME=/root", "LC_ALL=C", "LANG=C", "TERM=xterm", "http_proxy=http://proxy"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// proves OWN-3
func TestSecretsFromEnv_LongestFirst(t *testing.T) {
	t.Parallel()
	got := SecretsFromEnv([]string{
		"A_TOKEN=12345678", "B_KEY=123456789\n", "C_SECRET=short", "PASSWORD=passpass", "db_password_1=ünïcödé",
		"D_TOKEN=12345678", "PLAIN=not-a-secret", "NAMED=named-secret", "TOKENS=not-a-secret",
	}, []string{"NAMED"})
	want := []string{"ünïcödé", "named-secret", "123456789", "12345678", "passpass"}
	want = want[1:] // seven characters in eleven bytes are too few
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// proves COO-7: the marker is the call's own, once.
func TestCommandEnv_CarriesTheMarker(t *testing.T) {
	t.Parallel()
	got := commandEnv([]string{"A=1", "HOLDFAST_CALL=outer", "HOLDFAST_DISPATCH=7", "HOLDFAST_GATE=x", "BASH_FUNC_f%%=() { :; }", "1A=2", "odd"}, "c1", 2)
	if want := []string{"A=1", "HOLDFAST_CALL=c1", "HOLDFAST_DISPATCH=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
