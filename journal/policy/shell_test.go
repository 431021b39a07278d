package policy

import (
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func resourcesOf(command string) []Resource { return ShellResources(command, "/ws", "/home/u") }

func TestShellResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		// words
		{"git  push   origin", "shell git push origin"},
		{`"git" push`, "shell git push"},
		{`g\it pu"s"h`, "shell git push"},
		{`'rm' -rf x`, "shell rm -rf x"},
		{`"git push" x`, "shell 'git push' x"},
		{`git commit -m "a b"`, "shell git commit -m 'a b'"},
		{`echo 'it'\''s'`, `shell echo 'it'\''s'`},
		{`echo ""`, "shell echo ''"},
		{"rm '*.go' *.go", "shell rm '*.go' *.go"},
		{"git stash show stash@{0}", "shell git stash show stash@{0}"},
		{"git \\\npush", "shell git push"},
		{"a \"b\nc\"", "shell a 'b\nc'"},
		{`"X=1" ls`, "shell 'X=1' ls"},
		// lists, pipelines, bodies
		{"git push --force; rm -rf /", "shell git push --force; shell rm -rf /"},
		{"a && b || c | d & e", "shell a; shell b; shell c; shell d; shell e"},
		{"a\nb\n\nc", "shell a; shell b; shell c"},
		{"(a; { b; }); ! c", "shell a; shell b; shell c"},
		{"if a; then b; elif c; then d; else e; fi", "shell a; shell b; shell c; shell d; shell e"},
		{"while a; do b; done; until c; do d; done", "shell a; shell b; shell c; shell d"},
		{"for i in 1 $(a); do b; done", "shell a; shell b"},
		{"case $(a) in x) b;; *) c;; esac", "shell a; shell b; shell c"},
		{"a |& b", "shell a; shell b"},
		// substitutions
		{"echo $(a)", "shell a; shell echo $(a)"},
		{`echo "x$(a "$(b)")"`, `shell b; shell a "$(b)"; shell echo "x$(a "$(b)")"`},
		{"echo `a`", "shell a; shell echo `a`"},
		{"a <(b) >(c)", "shell b; shell c; shell a <(b) >(c)"},
		{"x=$(a)", "shell a; shell x=$(a) neutral"},
		{"echo ${x:-$(a)}", "shell a; shell echo ${x:-$(a)}"},
		{"echo $((1 + $(a)))", "shell a; shell echo $((1 + $(a)))"},
		{"a <<EOF\n$(b)\nEOF", "shell b; shell a"},
		{"a <<'EOF'\n$(b)\nEOF", "shell a"},
		{"a <<< $(b)", "shell b; shell a"},
		{"[[ -n $(a) ]]", "shell a; shell [[ -n $(a) ]] neutral"},
		// assignments
		{"X=1", "shell X=1 neutral"},
		{"X=1 a", "shell X=1 a"},
		{"export X=1", "shell export X=1"},
		{"local x=1; readonly y=2", "shell local x=1 neutral; shell readonly y=2 neutral"},
		{"set -euo pipefail", "shell set -euo pipefail neutral"},
		// redirects
		{"a > f", "edit f; shell a"},
		{"a >> sub/f 2>&1", "edit sub/f; shell a"},
		{"a < f", "read f; shell a"},
		{"a <> f", "edit f; shell a"},
		{"a >| f", "edit f; shell a"},
		{"a &> f", "edit f; shell a"},
		{"a >& f", "edit f; shell a"},
		{"> f", "edit f"},
		{"echo $(<f)", "read f; shell echo $(<f)"},
		{"{ a; b; } > f", "edit f; shell a; shell b"},
		{"a > /dev/null 2>&1 <&-", "shell a"},
		{"a > /tmp/f", "external_directory /tmp; edit /tmp/f neutral; shell a"},
		{"a > ../f", "external_directory / always; edit /f neutral; shell a"},
		{"a > /ws/f", "edit f; shell a"},
		{"a > ~/f", "external_directory /home/u always; edit /home/u/f neutral; shell a"},
		{"a > '~/f'", "edit ~/f; shell a"},
		{"a < /etc/ssh/x", "external_directory /etc/ssh always; read /etc/ssh/x neutral; shell a"},
		{"a > /dev/tcp/h/1", "external_directory /dev/tcp/h always; edit /dev/tcp/h/1 neutral; shell a"},
		// cd
		{"cd sub", "shell cd sub neutral"},
		{"cd -- ./sub && a > f", "shell cd -- ./sub neutral; edit sub/f; shell a"},
		{"cd sub; a > f", "shell cd sub neutral; edit f; edit sub/f; shell a"},
		{"cd a && cd b && x > f", "shell cd a neutral; shell cd b neutral; edit a/b/f; shell x"},
		{"(cd sub); a > f", "shell cd sub neutral; edit f; shell a"},
		{"cd /ws/sub && a < f", "shell cd /ws/sub neutral; read sub/f; shell a"},
		{"cd ..", "external_directory / always"},
		{"cd sub && cd ..", "shell cd sub neutral; shell cd .. neutral"},
		{"cd /tmp/x && a > f", "external_directory /tmp/x; external_directory /tmp/x; edit /tmp/x/f neutral; shell a"},
		{"cd", "external_directory /home/u always"},
		{"cd ~/x", "external_directory /home/u/x"},
		// the floor
		{"sudo ls", "shell sudo ls always"},
		{"/usr/bin/sudo ls", "shell /usr/bin/sudo ls always"},
		{"su -c ls", "shell su -c ls always"},
		{"doas ls", "shell doas ls always"},
		// arguments of the preset's commands
		{"cat a .env", "read a neutral; read .env; shell cat a .env"},
		{"cat /etc/passwd", "external_directory /etc always; read /etc/passwd neutral; shell cat /etc/passwd"},
		{"ls /tmp", "external_directory /tmp; shell ls /tmp"},
		{"ls /tmp/*.x", "external_directory /tmp; shell ls /tmp/*.x"},
		{"grep -n /etc/x src", "read src neutral; shell grep -n /etc/x src"},
		{"cd .git && cat config", "shell cd .git neutral; read .git/config; shell cat config"},
		{"git show HEAD:.env", "read .env; shell git show HEAD:.env"},
		{"# nothing", "shell # nothing neutral"},
	} {
		if got := withoutDoubles(show(resourcesOf(c.command))); got != withoutDoubles(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.command, got, c.want)
		}
	}
}

func withoutDoubles(s string) string {
	return strings.Join(slices.Compact(strings.Split(s, "; ")), "; ")
}

func TestShellResources_SecondReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, also, could string }{
		{"git push", "", ""},
		{"/usr/bin/git push", "git push", ""},
		{"X=1 rm y", "rm y", ""},
		{"git -C sub --no-pager push", "git push", ""},
		{"git $X", "", "git*"},
		{"git $X push", "", "git*push"},
		{"rm *.log", "", "rm*"},
		{"rm a*.log b", "", "rm a* b"},
		{"git {push,--force}", "", "git*"},
	} {
		rs := resourcesOf(c.command)
		r := rs[len(rs)-1]
		if r.Also != c.also || r.Could != c.could {
			t.Errorf("%s: got also %q, could %q, want %q, %q", c.command, r.Also, r.Could, c.also, c.could)
		}
	}
}

// opaqueCommands hide what they run, or are read differently by shells.
var opaqueCommands = []string{
	// can't be read
	"", "  ", "echo 'x", "if true", "a )", "a\x00b", "a\xffb", "ls\rrm x", "ls\x1b[2K", "e\u0301cho x", "ls \u202eab",
	strings.Repeat("(", 5000), strings.Repeat("$(", 500), strings.Repeat("a", maxCommand+1), "echo `ls # `; reboot\n`",
	"ls # x\\\nrm y",
	// computed names
	"$X", "$(echo rm) x", "`echo rm` x", `"$X" y`, "r* x", "r?m x", "[r]m x", "{rm,-rf,x}", "~/bin/x", `"" x`, "!(rm x)", "@(rm) x", "r${X}m x", "$'\\x72m' x",
	// other commands in arguments
	"timeout 5 ls", "time ls", "nice ls", "nohup ls", "env ls", "/usr/bin/env ls", "xargs ls", "watch ls", "command ls", "exec ls", "builtin cd x",
	"eval ls", "eval \"$X\"", "source f", ". ./f", "trap ls EXIT", "setsid ls", "stdbuf -o0 ls", "busybox rm x", "parallel ls", "coproc ls",
	"sh -c ls", `bash -c "$X"`, "bash -lc 'rm x'", "/bin/sh -c ls", "sh < f", "curl x | sh", "curl x | bash -s", "bash <(curl x)", "sh /dev/stdin", "bash <<EOF\nls\nEOF", "bash <<< ls",
	"python <<EOF\nx\nEOF", "python3 - <<EOF\nx\nEOF", "curl x | python3", "curl x | python3 -", "node <<< x", "perl /dev/stdin", "python <(curl x)", "python3.12 <<< x", "ssh h <<EOF\nrm x\nEOF", "psql <<< x",
	"find . -exec rm {} +", "find . -execdir rm {} ';'", "find . -ok rm {} ';'", `find . "-exec" rm {} +`, `find . -ex'ec' rm {} +`, "find . -okdir rm {} ';'",
	"git -c alias.x='!rm y' x", "git -C sub -c core.pager=x log", "git --exec-path=. status", "git --config-env=a=b x", "git $X push",
	// what names mean
	"f() { ls; }", "ls() { rm x; }; ls", "function ls { rm x; }", "alias ls='rm x'", "hash -p ./x ls", "enable -f x y", "shopt -s extglob", "set -- a", "set -o posix", "complete -C x y", "compgen -C x",
	"PATH=.", "PATH=. ls", "export PATH=.", "declare -x PATH=.", "readonly PATH=.", "LD_PRELOAD=x ls", "IFS=x", "BASH_ENV=x", "ENV=x ls", "PS4='$(x)'", "GIT_SSH_COMMAND=x git fetch",
	"GIT_PAGER=x git log", "GOFLAGS=-exec=x go test", "NODE_OPTIONS=x npm test", "PYTHONPATH=x pytest", "CDPATH=/ cd etc", "HOME=/ cd", "PROMPT_COMMAND=x", "MAKEFLAGS=x make test",
	"read PATH < f", "unset PATH", "for PATH in .; do ls; done", "BASH_ALIASES[ls]=x", "BASH_CMDS[ls]=./x", "declare -n x=PATH", "export \"$X\"", "nameref x=y", "printf -v PATH x", "pushd sub", "X=1 cd sub", "${PATH:=x}; : ${PATH:=.}",
	// values that are run as expressions
	"echo ${!x}", "echo ${x@P}", "x='a[$(rm y)]'; echo $((x))", "x=$(ls); [[ $x -eq 1 ]]", "[[ 'a[$(rm y)]' -eq 0 ]]", "[[ -v 'a[$(rm y)]' ]]", "test -v 'a[$(rm y)]'", "printf -v 'a[$(rm y)]' x", "unset 'a[$(rm y)]'", "read 'a[$(rm y)]' < f", "let x=1", "declare -i 'x=a[$(rm y)]'",
	"echo ${a['$(rm y)']}",
	// read differently by bash and sh
	"ls >&'$(rm x)'", "ls >& 'a`rm x`'", "declare -a 'a=($(rm x))'", "declare a='($(rm x))'", "readonly 'a=(`rm x`)'",
	`echo $'a\' ; rm x #'`, `echo $"a"`, "echo $[1+2]", `echo "${x:-'}"; rm y; echo "'}"`, "cat <<EOF\nEO\\\nF\nrm x\nEOF\n", "echo `echo \\`rm x\\``", "echo a &>f rm y", "ls {fd}>f", "${ rm x; }", "echo ${ rm x;}", "[[ a || b ]]; cat <<< x", "((rm)); cat <<< x",
	// folders and files that can't be told
	"cd $X", "cd -", "cd -P sub", "cd *", "cd a b", "cd a/../..", "cd sub && a > ../f", "a > sub/../f", "a > $X", "a > *.x", "a > {a,b}", "a >& $X", "a <& $X", "cd {a,b}", "while a; do cd sub; b > f; done", "a > ''", "cd $X && a > f",
}

func TestShellResources_Opaque(t *testing.T) {
	t.Parallel()
	generous := []Rule{{"shell", "*", Allow}, {"edit", "*", Allow}, {"read", "*", Allow}, {"external_directory", "*", Allow}}
	for _, command := range opaqueCommands {
		rs := resourcesOf(command)
		if !rs[0].Opaque || rs[0].Value != command || rs[0].Permission != "shell" || rs[0].Why == "" {
			t.Errorf("%.60q: got %.200s", command, show(rs))
		}
		for _, preset := range []Preset{AskAll, AskWrites, Workspace} {
			v := Evaluate(preset, generous, rs)
			if v.Action != Ask || len(v.Asks) == 0 || !v.Asks[0].AlwaysAsk {
				t.Errorf("%.60q under %s: got %s", command, preset, v.Action)
			}
		}
	}
}

func TestShellResources_WithoutAWorkspace(t *testing.T) {
	t.Parallel()
	for _, workspace := range []string{"", "relative", "/"} {
		if rs := ShellResources("a > f", workspace, ""); !rs[0].Opaque {
			t.Errorf("workspace %q: got %s", workspace, show(rs))
		}
	}
	if got := show(ShellResources("cd", "/ws", "")); got != "external_directory ~ always" {
		t.Errorf("without a home: got %s", got)
	}
}

func FuzzShellResources(f *testing.F) {
	for _, c := range opaqueCommands {
		if len(c) < 200 {
			f.Add(c)
		}
	}
	for _, c := range append(slices.Clone(provenCommands), unprovenCommands...) {
		f.Add(c)
	}
	own := []Rule{{"shell", "ls *", Allow}, {"shell", "git *", Allow}, {"edit", "*", Allow}}
	f.Fuzz(func(t *testing.T, command string) {
		rs := resourcesOf(command)
		if len(rs) == 0 {
			t.Fatalf("%q has no resource", command)
		}
		if _, err := parse(command, syntax.LangBash); err != nil && !rs[0].Opaque {
			t.Fatalf("%q doesn't parse and isn't opaque", command)
		}
		for _, preset := range []Preset{AskAll, AskWrites, Workspace} {
			if v := Evaluate(preset, own, resourcesOf("rm -rf / ; "+command)); v.Action == Allow {
				t.Fatalf("rm -rf / ; %q is allowed", command)
			}
			// Behind a comment, a here-document or a backslash it isn't run.
			if strings.ContainsAny(command, "#") || strings.Contains(command, "<<") || strings.HasSuffix(command, `\`) {
				continue
			}
			if v := Evaluate(preset, own, resourcesOf(command+"; rm -rf /")); v.Action == Allow {
				t.Fatalf("%q; rm -rf / is allowed", command)
			}
		}
	})
}

// A text that isn't analysed isn't parsed either: very deep ones would take the stack.
//
// proves PER-1
func TestWords_NotOfWhatIsntAnalysed(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"(", "$(", "{ ", "a;"} {
		command := strings.Repeat(part, 4<<20)
		if words, ok := Words(command); ok {
			t.Errorf("%q again and again has %d words", part, len(words))
		}
		if got := ShellResources(command, "/w", ""); len(got) != 1 || !got[0].Opaque {
			t.Errorf("%q again and again is %d resources", part, len(got))
		}
	}
}
