package policy

import (
	"reflect"
	"slices"
	"testing"
)

// provenCommands are allowed by the workspace preset.
var provenCommands = []string{
	"ls", "ls -la src", "ls *.go", "cat README.md", "cat src/*.go", "head -n 20 a", "tail -5 a", "tail -n +5 a", "wc -l *.go",
	"grep -rn foo .", `grep -rn "/api/v1" src`, "grep -A 3 -i x a", "grep --include='*.go' -r x .", "rg foo", "rg -n --type=go foo src", "rg -g '*.go' foo", "rg -e a -e b src",
	"find . -name '*.go' -type f", "find src -maxdepth 2", "pwd", "echo hi", `echo "$X"`, "echo *.go", `printf '%s\n' a "$X"`, "test -f a", "[ -f a ] && echo y", `[ "$X" = y ]`, `[ -n "$X" ]`, "[[ -f a ]]",
	"diff a b", "diff -u a b", "sort -u a", "sort -t , -k 2 a", "uniq -c", "cut -d / -f 1 a", "cut -d: -f1 a", "tr a-z A-Z", "date", "date +%s", "date -u", "true", "false", "sleep 1",
	"git status", "git status --short", "git diff", "git diff HEAD~1 -- src/a.go", "git diff main..topic", "git log --oneline -5", "git show HEAD", "git show HEAD:src/a.go", "git branch", "git branch --merged", "git branch topic",
	"go build ./...", "go vet ./...", "go test ./... -run TestX -count=1", "go test -race -v ./a", "go list -f '{{.Dir}}' ./...", "go env GOPATH",
	"npm test", "npm run test", "npm run lint", "npm run build", "make test", "make lint", "make build", "make check", "pytest", "pytest -q tests/a.py",
	"cd sub && ls", "cd sub", "X=1", "X=1; echo \"$X\"", "ls > out.txt 2>&1", "ls 2> /dev/null", "cat a | grep x | head -n 5", "cat <<EOF > a\nhello\nEOF", "true || exit 1", "for f in a b; do echo \"$f\"; done",
	"grep x /dev/null", "set -e; ls", `git "status"`, `g\it status`, "while IFS= read -r line; do echo \"$line\"; done < a", "i=0; echo $((i + 1))", "cat .env.example", "ls /ws/src",
}

// unprovenCommands begin like commands of the workspace preset and are asked.
var unprovenCommands = []string{
	// other programs, writes and settings by options
	"find . -delete", "find . -fprint x", "find . -fprintf x y", "find . -fls x", "find . -name x -newer a -delete", "find * -name x", "find . $X",
	"rg --pre=./x foo", "rg --pre ./x foo", "rg --pre-glob=x foo", "rg -z foo", "rg --hostname-bin=x foo", "rg * ", "rg --no-ignore foo", "rg --hidden foo", "rg -uuu foo", "rg -f .env x", "rg -g .env x", "rg -g '.e*' x", "rg --glob=.env x", "rg --glob .env x", "rg -L foo",
	"sort -o x y", "sort -ox y", "sort --output=x y", "sort --outp=x y", "sort -uo x y", "sort --compress-program=./x y", "sort -T /tmp y", "sort --files0-from=x", "sort *", "sort \"$X\"", "sort -{o,x}",
	"uniq a b", "date -s x", "date 0101", "date --set=x", "date -f a", "printf -v x y", "printf \"$X\"", "printf $X", "test $X", "[ $X ]", "[ \"$X\" \"$Y\" ]", "wc --files0-from=.env", "tail $X",
	"git diff --output=x", "git diff --outpu=x", "git diff --ext-diff", "git diff --no-index a b", "git log --output=x", "git log --output x", "git log -Ox", "git show --textconv HEAD", "git log $X", "git log --{output=x,y}", "git diff *", "git show :.env", "git status --help", "git diff -O.env",
	"git branch -D x", "git branch -d x", "git branch --delete x", "git branch -m a b", "git branch -M a", "git branch -f a b", "git branch -c a b", "git branch -u o/x", "git branch --unset-upstream", "git branch --edit-description", "git branch --del x",
	"go test -exec ./x ./...", "go test --exec=./x", "go test -exec=./x", "go build -toolexec ./x", "go build -toolexec=x ./...", "go vet -vettool=x ./...", "go env -w X=1", "go env -u X", "go build -o x", "go build -o=.git/hooks/x", "go test -c", "go test -coverprofile=x", "go test -cpuprofile x", "go build -ldflags=-extld=./x", "go build -gcflags=x", "go build -overlay=x", "go build -modfile=x", "go build -mod=mod", "go build -C /tmp", "go list -toolexec=x", "go test -args -x", "go test -fuzz=x", "go test $X", "go vet -json -vettool ./x",
	"npm test --prefix x", "npm test --script-shell=x", "npm run test -- --config=x", "npm test $X", "npm run evil", "npm run", "npm testx",
	"make", "make test x", "make -f x test", "make test SHELL=./x", "make evil", "make --eval=x test", "pytest -p x", "pytest -c x", "pytest --rootdir=/", "pytest --basetemp=x", "pytest @x", "pytest -o x=y",
	// secrets and the outside
	"cat .env", "cat ./.env", "cat sub/.env", "cat .ENV", "cat '.env'", "cat .e\"nv\"", "cat .e*", "cat .[e]nv", "cat *", "cat src/*", "cat {.env,x}", "cat $X", "cat ${X}", "cat $(ls)", "head -1 .env", "head -c 10 .env", "tail -n 1 .env", "wc .env", "grep x .env", "grep -f .env x", "grep '' .env", "grep -e x .env", "grep x -- .env", "sort .env", "cut -c 1- .env", "diff .env a", "uniq .env", "cat < .env", "cat id_rsa", "cat .git/config", "cd .git && cat config", "cd sub && cat .env", "git diff .env", "git log -p -- .env", "git show HEAD:.env", "git diff -- '.e*'", "grep -r --include=.env x .", "grep -r --include '.e*' x .",
	"cat /etc/passwd", "cat //etc/passwd", "cat ~/.ssh/id_rsa", "cat ~", "ls ~", "ls ~root", "ls /", "ls ..", "ls ../x", "cat ../x", "cat sub/../../x", "cat /ws/../x", "cat $HOME/x", "find / -name x", "find .. -name x", "grep -r x /home", "rg x ..", "test -f /etc/x", "ls /ws2", "cat /proc/self/environ", "echo /root/*", "echo ~/.*", "for f in /root/*; do echo \"$f\"; done", "diff a /tmp/b", "git diff /etc/passwd a", "go build ../x", "cd /tmp", "cd / && ls", "cd", "cd ~", "cd .. && ls",
	// writes and other commands
	"echo x > .git/hooks/pre-commit", "echo x > .GIT/config", "echo x > .env", "echo x >> .github/workflows/a.yml", "cd .git && echo x > config", "echo x > /tmp/x", "echo x > ../x", "echo x > ~/.bashrc", "echo x >& /tmp/x", "ls &> /etc/x", "> .env", "echo x | tee y", "cp a b", "rm x", "mv a b", "ln -s / x", "git push", "git commit -m x", "git checkout x", "git", "git statusx", "go run .", "go generate", "go install", "go mod tidy", "npm install", "npx x", "curl x", "python x.py", "sh x.sh", "./ls", "/bin/ls", "bin/git status",
	"X=1 ls", "FOO=bar npm test", "export X=1", "ls; rm x", "ls && rm x", "ls || rm x", "ls | rm x", "ls & rm x", "ls\nrm x", "(rm x)", "{ rm x; }", "echo $(rm x)", "echo `rm x`", "echo \"$(rm x)\"", "cat <(rm x)", "ls > >(rm x)", "cat <<EOF\n$(rm x)\nEOF", "if rm x; then ls; fi", "for i in $(rm x); do ls; done", "case a in $(rm x)) ls;; esac", "echo ${x:-$(rm y)}", "echo $((1 + $(rm y)))", "[[ -n $(rm x) ]]", "x=$(rm y)", "a=($(rm y))", "! rm x", "[[ a || rm ]]", "((rm))", "[[ a > b ]] && rm x", "\"git status\"", "'git status' x", "git\\ status", "\"ls\n\"", "sudo ls", "doas cat a", "su -c ls",
}

func TestEvaluate_WorkspacePreset(t *testing.T) {
	t.Parallel()
	for _, command := range provenCommands {
		if v := Evaluate(Workspace, nil, resourcesOf(command)); v.Action != Allow {
			t.Errorf("%q: got %s: %v", command, v.Action, v.Asks)
		}
	}
	for _, command := range append(append([]string{}, unprovenCommands...), opaqueCommands...) {
		if v := Evaluate(Workspace, nil, resourcesOf(command)); v.Action != Ask {
			t.Errorf("%.60q: got %s by %v", command, v.Action, v.AllowedBy)
		}
	}
}

func TestEvaluate_StricterPresetsAskForEveryCommand(t *testing.T) {
	t.Parallel()
	neutral := map[string]bool{"cd sub": true, "X=1": true, "[[ -f a ]]": true}
	for _, command := range append(append([]string{}, provenCommands...), unprovenCommands...) {
		rs := resourcesOf(command)
		if v := Evaluate(AskAll, nil, rs); v.Action != Ask {
			t.Errorf("%q under ask_all: got %s", command, v.Action)
		}
		want := Ask
		if neutral[command] {
			want = Allow
		}
		if v := Evaluate(AskWrites, nil, rs); v.Action != want {
			t.Errorf("%q under ask_writes: got %s, want %s", command, v.Action, want)
		}
	}
}

func TestEvaluate_SessionRules(t *testing.T) {
	t.Parallel()
	allow := func(p string) Rule { return Rule{"shell", p, Allow} }
	deny := func(p string) Rule { return Rule{"shell", p, Deny} }
	for _, c := range []struct {
		name    string
		preset  Preset
		rules   []Rule
		command string
		want    Action
	}{
		{"own rule allows", AskAll, []Rule{allow("git push *")}, "git push origin", Allow},
		{"words are normalised", AskAll, []Rule{allow("git push *")}, "git  push", Allow},
		{"all parts must be allowed", AskAll, []Rule{allow("git push *")}, "git push; rm -rf /", Ask},
		{"one denied part denies", AskAll, []Rule{allow("git push *"), deny("rm *")}, "git push; rm -rf /", Deny},
		{"deny inside a substitution", Workspace, []Rule{deny("rm *")}, "echo $(rm x)", Deny},
		{"deny inside an opaque text", Workspace, []Rule{deny("rm *")}, "eval x; rm y", Deny},
		{"deny of an opaque text", Workspace, []Rule{deny("eval *")}, "ls; eval x", Deny},
		{"last rule wins", Workspace, []Rule{deny("git *"), allow("git push *")}, "git push", Allow},
		{"last rule wins, deny", Workspace, []Rule{allow("git *"), deny("git push *")}, "git push", Deny},
		{"own rule beats the preset", Workspace, []Rule{deny("ls *")}, "ls", Deny},
		{"own rule allows the unproven", Workspace, []Rule{allow("find *")}, "find . -delete", Allow},
		{"preset doesn't", Workspace, nil, "find . -delete", Ask},
		{"own rule never allows the opaque", Workspace, []Rule{allow("*")}, "timeout 5 ls", Ask},
		{"rule of the inner command, wrapped", Workspace, []Rule{allow("rm *")}, "env rm x", Ask},
		{"rule of the inner command, assigned", AskAll, []Rule{allow("npm test *")}, "FOO=1 npm test", Ask},
		{"assignment in the rule", AskAll, []Rule{allow("FOO=1 npm test")}, "FOO=1 npm test", Allow},
		{"sudo is always asked", Workspace, []Rule{allow("*")}, "sudo ls", Ask},
		{"sudo can be denied", Workspace, []Rule{deny("sudo *")}, "sudo ls", Deny},
		{"deny by another path", AskAll, []Rule{allow("*"), deny("rm *")}, "/bin/rm x", Deny},
		{"deny behind an assignment", AskAll, []Rule{allow("*"), deny("rm *")}, "X=1 rm x", Deny},
		{"deny behind git's options", AskAll, []Rule{allow("git *"), deny("git push *")}, "git -C . push", Deny},
		{"ask behind git's options", AskAll, []Rule{allow("git *"), {"shell", "git push *", Ask}}, "git -C . push", Ask},
		{"allow only as it is named", AskAll, []Rule{allow("git push *")}, "./git push", Ask},
		{"could become denied", AskAll, []Rule{allow("git *"), deny("git push *")}, "git $X", Ask},
		{"could become denied by a pattern", AskAll, []Rule{allow("rm *"), deny("rm -rf *")}, "rm *", Ask},
		{"could become denied by braces", AskAll, []Rule{allow("git *"), deny("git push *")}, "git {push,--force}", Ask},
		{"couldn't", AskAll, []Rule{allow("*"), deny("rm *")}, "echo $X", Allow},
		{"quoting doesn't evade", AskAll, []Rule{allow("*"), deny("rm *")}, `r\m x`, Deny},
		{"quoted words aren't several", AskAll, []Rule{allow("git push *")}, `"git push" x`, Ask},
		{"cd is neutral beside others", AskAll, []Rule{allow("ls *")}, "cd sub && ls", Allow},
		{"cd alone", AskAll, []Rule{allow("cd *")}, "cd sub", Allow},
		{"cd alone can be denied", Workspace, []Rule{deny("cd *")}, "cd sub", Deny},
		{"cd outside", AskAll, []Rule{allow("ls *"), {"external_directory", "/tmp", Allow}}, "cd /tmp && ls", Allow},
		{"cd outside without its rule", AskAll, []Rule{allow("*")}, "cd /tmp && ls", Ask},
		{"the floor of folders", AskAll, []Rule{allow("*"), {"external_directory", "*", Allow}}, "cd /etc/ssh && ls", Ask},
		{"home is on it", AskAll, []Rule{allow("*"), {"external_directory", "*", Allow}}, "cd && ls", Ask},
		{"a redirect needs edit", AskAll, []Rule{allow("echo *")}, "echo x > f", Ask},
		{"a redirect with edit", AskAll, []Rule{allow("echo *"), {"edit", "f", Allow}}, "echo x > f", Allow},
		{"a redirect denied", Workspace, []Rule{{"edit", "*.lock", Deny}}, "echo x > a.lock", Deny},
		{"a redirect outside denied", Workspace, []Rule{{"external_directory", "*", Allow}, {"edit", "/tmp/*", Deny}}, "echo x > /tmp/x", Deny},
		{"a read denied", Workspace, []Rule{{"read", "secrets/*", Deny}}, "cat secrets/x", Deny},
		{"a secret isn't covered by the command", Workspace, []Rule{allow("cat *")}, "cat .env", Ask},
		{"a secret with its own rule", Workspace, []Rule{allow("cat *"), {"read", ".env", Allow}}, "cat .env", Allow},
		{"an unknown action asks", Workspace, []Rule{{"shell", "ls *", "yes"}}, "ls", Ask},
		{"a rule of another permission", AskAll, []Rule{{"edit", "*", Allow}}, "ls", Ask},
	} {
		if v := Evaluate(c.preset, c.rules, resourcesOf(c.command)); v.Action != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.name, c.command, v.Action, c.want)
		}
	}
}

// proves PER-1 (one group for each permission that must ask)
func TestEvaluate_GroupsByPermission(t *testing.T) {
	t.Parallel()
	v := Evaluate(AskWrites, nil, resourcesOf("make all > out.txt; cp a b 2> err.txt; cat x; cd /etc"))
	want := []AskGroup{
		{"edit", []string{"out.txt", "err.txt"}, false, nil},
		{"shell", []string{"make all", "cp a b", "cat x"}, false, nil},
		{"external_directory", []string{"/etc"}, true, []string{onTheFloor}},
	}
	if v.Action != Ask || !reflect.DeepEqual(v.Asks, want) {
		t.Errorf("got %s %v, want %v", v.Action, v.Asks, want)
	}
	text := "ls; eval x > f"
	v = Evaluate(AskWrites, nil, resourcesOf(text))
	want = []AskGroup{{"shell", []string{text}, true, []string{"eval starts another command or changes what names mean"}}, {"edit", []string{"f"}, false, nil}}
	if !reflect.DeepEqual(v.Asks, want) {
		t.Errorf("an opaque text is asked as a whole: got %v, want %v", v.Asks, want)
	}
}

// proves PER-2 (who is asked is told why, each reason once, and none that isn't one)
func TestEvaluate_SaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		preset    Preset
		resources []Resource
		always    bool
		why       []string
	}{
		{Workspace, resourcesOf("sudo ls; sudo id; doas id; find . -delete"), true, []string{"sudo acts as another person", "doas acts as another person"}},
		{Workspace, resourcesOf("make all"), false, nil},
		{AskAll, resourcesOf("ls > a"), false, nil},
		{Workspace, resourcesOf("find $X"), false, []string{resourcesOf("find $X")[0].Why}},
		{Workspace, []Resource{{Permission: PermissionExternal, Value: "/etc"}}, true, []string{onTheFloor}},
		{Workspace, []Resource{{Permission: PermissionShell, Value: "x", Opaque: true}}, true, []string{"nobody can tell what it would do"}},
	} {
		v := Evaluate(c.preset, nil, c.resources)
		if len(v.Asks) == 0 {
			t.Fatalf("%v isn't asked: %+v", c.resources, v)
		}
		if g := v.Asks[0]; g.AlwaysAsk != c.always || !slices.Equal(g.Why, c.why) {
			t.Errorf("%v: always %v, since %q; want %v, %q", c.resources, g.AlwaysAsk, g.Why, c.always, c.why)
		}
	}
}

func TestEvaluate_Decisions(t *testing.T) {
	t.Parallel()
	own := Rule{"shell", "make *", Allow}
	v := Evaluate(Workspace, []Rule{own}, resourcesOf("ls && make all"))
	want := []Decision{
		{Resource{Permission: "shell", Value: "ls"}, Rule{"shell", "ls *", Allow}, true, true},
		{Resource{Permission: "shell", Value: "make all"}, own, false, true},
	}
	if v.Action != Allow || !reflect.DeepEqual(v.AllowedBy, want) || v.Asks != nil || v.Denied != nil {
		t.Errorf("got %+v, want %+v", v, want)
	}
	deny := Rule{"shell", "rm *", Deny}
	v = Evaluate(Workspace, []Rule{deny}, resourcesOf("ls; rm x; cp a b"))
	if v.Action != Deny || len(v.Denied) != 1 || v.Denied[0].Rule != deny || v.Asks != nil || v.AllowedBy != nil {
		t.Errorf("got %+v", v)
	}
}

func TestEvaluate_NothingKnownAsks(t *testing.T) {
	t.Parallel()
	for _, preset := range []Preset{AskAll, AskWrites, Workspace} {
		if v := Evaluate(preset, []Rule{{"shell", "*", Allow}}, nil); v.Action != Ask || v.Asks != nil {
			t.Errorf("%s: got %+v", preset, v)
		}
	}
}

func TestEvaluate_HoldsTheFloorForForeignResources(t *testing.T) {
	t.Parallel()
	rules := []Rule{{"external_directory", "*", Allow}, {"shell", "*", Allow}}
	for _, r := range []Resource{
		{Permission: "external_directory", Value: "/etc"},
		{Permission: "external_directory", Value: "/"},
		{Permission: "external_directory", Value: "/proc/1"},
		{Permission: "external_directory", Value: "/private/etc"},
		{Permission: "shell", Value: "x", Opaque: true},
		{Permission: "shell", Value: "x", AlwaysAsk: true},
	} {
		v := Evaluate(Workspace, rules, []Resource{r})
		if v.Action != Ask || !v.Asks[0].AlwaysAsk {
			t.Errorf("%v: got %+v", r, v)
		}
	}
}
