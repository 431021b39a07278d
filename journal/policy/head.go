package policy

import (
	"slices"
	"strings"
)

// asksAlways act as another person: the floor.
var asksAlways = set("sudo su doas sudoedit pkexec runuser run0 gosu su-exec")

// wrappers start a command that is named in their arguments, input or files,
// or change what names mean. Until they are looked into, a text that uses one
// is opaque.
var wrappers = set(`timeout gtimeout time nice ionice nohup env xargs gxargs parallel watch command exec builtin eval
	source . trap setsid stdbuf unbuffer script chroot unshare nsenter flock taskset chrt prlimit setpriv
	strace ltrace perf systemd-run start-stop-daemon busybox toybox coproc noglob nocorrect repeat - caffeinate
	alias unalias hash enable shopt bind complete compgen fc pushd popd let function select nameref setarch numactl
	catchsegv dbus-run-session xvfb-run fakeroot faketime proot bwrap firejail entr`)

// shells run the text of a file, an argument or their input.
var shells = set("sh bash dash zsh ksh mksh ash fish csh tcsh rbash pwsh powershell nu elvish xonsh")

// interpreters run their input if they are given no file.
var interpreters = set("python pypy node nodejs deno bun perl ruby php lua luajit tclsh wish expect osascript rscript r julia guile ghci irb ipython ts-node tsx swift")

// textRunners run a text that they are fed, whatever their arguments are.
var textRunners = set(`psql mysql mariadb sqlite3 sqlite duckdb clickhouse-client redis-cli mongo mongosh sqlplus ssh bc dc ed ex
	vi vim nvim emacs at batch gdb lldb awk gawk mawk sed docker podman kubectl crontab make gmake m4 nc telnet ftp sftp
	chpasswd debconf-set-selections iptables-restore nft`)

// hides says why a command doesn't show what it runs, or "".
func hides(base string, words []word, fed bool) string {
	args := words[1:]
	bare := strings.TrimRight(base, "0123456789.-")
	switch {
	case base == "command" && len(args) > 0 && (args[0].value == "-v" || args[0].value == "-V"):
		return "" // only says where a command is
	case wrappers[base]:
		return base + " starts another command or changes what names mean"
	case shells[bare] && (fed || len(args) == 0 || !args[0].exact() || !isScript(args[0].value)):
		return base + " runs a text that isn't shown as commands"
	case interpreters[bare] && (fed || !givesProgram(args)):
		return base + " runs a program text from its input"
	case textRunners[bare] && fed:
		return base + " may run the text that it is fed"
	case base == "find" && slices.ContainsFunc(args, startsCommand):
		return "find starts another command"
	case base == "git" && configures(args):
		return "git is given settings that may start another command"
	case evaluates(base, args):
		return base + " is given a variable whose name is computed"
	}
	return ""
}

// isScript reports a file name that isn't an option nor an open file.
func isScript(s string) bool {
	return s != "" && s[0] != '-' && s[0] != '+' && !strings.HasPrefix(s, "/dev/") && !strings.HasPrefix(s, "/proc/")
}

// givesProgram reports an argument that keeps an interpreter from its input.
func givesProgram(args []word) bool {
	for _, a := range args {
		switch {
		case !a.static:
			return false
		case a.value == "--version", a.value == "-V", a.value == "--help":
			return true
		case a.value == "-" || !strings.HasPrefix(a.value, "-"):
			return isScript(a.value)
		}
	}
	return false
}

func startsCommand(w word) bool {
	return !w.exact() && (w.glob || w.brace) && strings.HasPrefix(w.value, "-") ||
		strings.HasPrefix(w.value, "-exec") || strings.HasPrefix(w.value, "-ok")
}

// configures reports settings in front of git's subcommand.
func configures(args []word) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.exact():
			return true
		case !strings.HasPrefix(a.value, "-"):
			return false
		case strings.HasPrefix(a.value, "-c"), strings.HasPrefix(a.value, "--config-env"), strings.HasPrefix(a.value, "--exec-path="):
			return true
		case gitGlobals[a.value]:
			i++
		}
	}
	return false
}

// evaluates reports builtins of the shell that take the name of a variable and
// evaluate what stands in its index.
func evaluates(base string, args []word) bool {
	switch base {
	case "read", "unset", "mapfile", "readarray", "getopts":
		return true // the plain uses are taken by builtin
	case "test", "[", "printf", "wait":
		for i, a := range args {
			flag := a.value == "-v" || a.value == "-R" || base == "wait" && a.value == "-p"
			if flag && i+1 < len(args) && (!args[i+1].exact() || !identifier(args[i+1].value) || dangerousVariable(args[i+1].value)) {
				return true
			}
			if base == "printf" && i == 0 && strings.HasPrefix(a.value, "-v") && a.value != "-v" {
				return true
			}
		}
	}
	return false
}

// builtin takes the commands of the shell itself that are judged by what they
// do to it. done is false for all others.
func (w *walker) builtin(words []word) (ok dirs, done bool) {
	args := words[1:]
	switch words[0].value {
	case "cd":
		return w.cd(words), true
	case ":", "exit", "return", "break", "continue", "shift":
		w.neutral(join(words))
	case "set":
		if !plainSet(args) {
			w.opaque("it changes how the shell reads what follows")
		}
		w.neutral(join(words))
	case "read", "unset":
		return w.dirs, w.names(words)
	case "declare", "typeset", "local", "export", "readonly":
		w.declare(words)
	case "[[":
		if len(args) == 0 || args[len(args)-1].value != "]]" {
			return w.dirs, false
		}
		w.neutral(join(words)) // sh finds no such command
	default:
		return w.dirs, false
	}
	return w.dirs, true
}

// plainSet takes set -e, -u, -x and -o pipefail in their combinations.
func plainSet(args []word) bool {
	for _, a := range args {
		if !a.exact() || a.value != "pipefail" && strings.Trim(a.value, "+-euxo") != "" {
			return false
		}
	}
	return len(args) > 0
}

// names takes read and unset of plainly named variables, which are neutral.
func (w *walker) names(words []word) bool {
	w.tainted = true
	for _, a := range words[1:] {
		switch {
		case a.exact() && a.value == "-r" && words[0].value == "read":
		case a.exact() && identifier(a.value) && !dangerousVariable(a.value):
		default:
			return false
		}
	}
	w.neutral(join(words))
	return true
}

// cd moves. Inside the workspace it is neutral, outside it is
// external_directory; where it can't be told the text is opaque.
func (w *walker) cd(words []word) dirs {
	args := words[1:]
	if len(args) > 0 && args[0].exact() && args[0].value == "--" {
		args = args[1:]
	}
	to := word{value: "~", static: true, tilde: true}
	if len(args) == 1 {
		to = args[0]
	}
	if len(args) > 1 || !to.static || to.glob || to.brace || climbs(to.value) || !to.tilde && strings.HasPrefix(to.value, "-") {
		w.opaque("it goes to a folder that isn't known")
		w.dirs.lost = true
		return w.dirs
	}
	if w.dirs.lost && !strings.HasPrefix(to.value, "/") && !to.tilde {
		w.opaque("it goes to a folder that isn't known")
		return w.dirs
	}
	reached := w.enter(words, to)
	w.dirs = w.dirs.union(reached)
	return reached
}

// enter adds what going to a folder means and returns where it leads. A shell
// resolves .. here by the text, as is done here.
func (w *walker) enter(words []word, to word) dirs {
	var reached dirs
	from := w.dirs.list
	if strings.HasPrefix(to.value, "/") || to.tilde || w.dirs.lost {
		from = []string{"/"}
	}
	for _, dir := range from {
		abs := w.absolute(to, dir)
		if strings.HasPrefix(abs, "~") {
			w.add(external(abs, w.home))
			reached.lost = true
			continue
		}
		if settle(abs, w.root).inside {
			w.neutral(join(words))
		} else {
			w.add(external(abs, w.home))
		}
		reached.list = append(reached.list, abs)
	}
	return reached
}
