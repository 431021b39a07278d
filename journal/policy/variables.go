package policy

import "strings"

// dangerousNames are variables that change what a command runs, where it looks
// or what it reads; dangerousPrefixes are families of them.
var dangerousNames = set(`PATH IFS ENV CDPATH HOME PWD OLDPWD SHELL SHELLOPTS BASHOPTS FPATH GLOBIGNORE
	PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND PAGER EDITOR VISUAL BROWSER TMPDIR TMP TEMP TERMINFO INPUTRC HISTFILE
	POSIXLY_CORRECT FUNCNEST CC CXX CPP AR LD AS NM RUSTFLAGS CFLAGS CXXFLAGS LDFLAGS CLASSPATH KUBECONFIG
	MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES TAR_OPTIONS GREP_OPTIONS CURL_HOME WGETRC NETRC
	HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
	EXECIGNORE COMSPEC HOSTALIASES LOCALDOMAIN RES_OPTIONS BROWSERSLIST JEST_CONFIG`)

var dangerousPrefixes = []string{
	"LD_", "DYLD_", "BASH_", "GIT_", "GO", "CGO_", "NODE_", "NPM_", "npm_", "YARN_", "PYTHON", "PYTEST_",
	"PERL", "RUBY", "GEM_", "BUNDLE_", "JAVA_", "_JAVA", "JDK_", "JVM_", "MAVEN_", "GRADLE_", "SSH_", "RIPGREP_",
	"LESS", "MAN", "XDG_", "CARGO_", "RUST", "DOCKER_", "AWS_", "SSL_", "GCONV_", "MALLOC_", "GLIBC_", "LUA_", "PHP",
	"MAKE", "PIP_", "UV_", "VIRTUAL_ENV", "DIRENV_", "SUDO_", "GPG_", "GNUPG", "COMP_", "ZDOTDIR", "HOLDFAST_",
}

// dangerousVariable reports a variable that must not be set unseen.
func dangerousVariable(name string) bool {
	if dangerousNames[name] {
		return true
	}
	for _, prefix := range dangerousPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_EDITOR") || strings.HasSuffix(name, "_OPTIONS")
}

// identifier reports whether s is a plain variable name. Anything else, such
// as a[$(rm x)], is evaluated by the shell and may run commands.
func identifier(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// plainValue reports whether an arithmetic that uses a variable of this value
// does nothing but count.
func plainValue(w word) bool {
	if !w.exact() {
		return false
	}
	return !strings.ContainsAny(w.value, "[]$`\"'\\ \t\n()=")
}

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
