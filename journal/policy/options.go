package policy

import "strings"

// usage says which arguments of a command are proven harmless. It is an
// allow-list: what it doesn't name is for the person to allow.
type usage struct {
	short   string // letters of options without a value, may be joined
	value   string // letters whose value may be anything and is never a file
	count   string // letters whose value is a number
	rest    string // letters whose value, if any, is joined to them
	globs   string // letters whose value chooses files
	long    string // names of options: --name, --name=value
	globbed string // names of options whose value chooses files
	dashed  string // names of options: -name, --name, -name=value (go, find)

	free     bool // every option is harmless
	tame     bool // no option runs a program or writes a file
	loose    bool // every argument is harmless, computed ones too
	names    bool // arguments are files of which only names and times are read
	contents bool // arguments are files that are read, or their history
	pattern  bool // the first argument is what to look for

	check func(args []word) string // says what more is wrong, or ""
}

const (
	goBuild = "v x n a race p tags trimpath json msan asan cover"
	goTest  = goBuild + " run count timeout short benchmem bench parallel failfast list shuffle cpu skip vet"
	gitShow = `stat shortstat numstat dirstat summary name-only name-status patch no-patch raw unified color no-color
		word-diff color-words ignore-space-change ignore-all-space ignore-blank-lines no-renames find-renames find-copies
		minimal patience histogram diff-filter pickaxe-all pickaxe-regex text binary abbrev no-abbrev full-index exit-code quiet
		no-ext-diff no-textconv submodule relative function-context inter-hunk-context compact-summary check`
	gitWalk = gitShow + ` oneline graph decorate no-decorate all branches tags remotes format pretty date since until after before
		author committer grep max-count skip reverse first-parent merges no-merges follow topo-order date-order left-right
		cherry-pick abbrev-commit simplify-by-decoration regexp-ignore-case extended-regexp fixed-strings invert-grep all-match`
)

// usages are the commands of the workspace preset by their first words.
var usages = map[string]usage{
	"ls":     {free: true, names: true},
	"cat":    {free: true, contents: true},
	"head":   {free: true, count: "nc", contents: true},
	"tail":   {free: true, count: "nc", contents: true},
	"wc":     {tame: true, short: "clmwL", long: "bytes chars lines words max-line-length total", contents: true},
	"pwd":    {short: "LP", loose: true},
	"echo":   {loose: true},
	"true":   {loose: true},
	"false":  {loose: true},
	"sleep":  {loose: true},
	"tr":     {loose: true},
	"printf": {loose: true, check: checkPrintf},
	"date":   {short: "uR", rest: "I", value: "d", long: "utc universal iso-8601 rfc-3339 rfc-email date", check: checkDate},
	"test":   {names: true, dashed: testOperators},
	"[":      {names: true, dashed: testOperators},
	"cut": {
		tame: true, short: "nsz", value: "dfcb", contents: true,
		long: "output-delimiter delimiter fields characters bytes complement only-delimited zero-terminated",
	},
	"sort": {
		short: "bcCdfghiMnrRsuVz", value: "tk", contents: true,
		long: `reverse numeric-sort unique key field-separator version-sort human-numeric-sort ignore-case check stable
			general-numeric-sort month-sort zero-terminated ignore-leading-blanks dictionary-order`,
	},
	"uniq": {
		short: "cdDiuz", count: "fsw", contents: true, check: checkUniq,
		long: "count repeated unique ignore-case skip-fields skip-chars check-chars",
	},
	"diff": {
		tame: true, short: "abBcdeiNpqrstTuwy", rest: "UCW", contents: true,
		long: `brief unified context recursive ignore-all-space ignore-space-change ignore-blank-lines ignore-case side-by-side
			report-identical-files color text new-file minimal suppress-common-lines width`,
	},
	"grep": {
		tame: true, short: "acEFGHhiIlLnoPqRrsvwxyZz", value: "e", count: "ABCm", contents: true, pattern: true,
		globbed: "include",
		long: `exclude exclude-dir color colour count ignore-case line-number recursive dereference-recursive files-with-matches
			files-without-match invert-match word-regexp line-regexp only-matching quiet silent no-messages with-filename
			no-filename extended-regexp fixed-strings basic-regexp perl-regexp max-count after-context before-context context
			regexp text null binary-files byte-offset initial-tab`,
	},
	"rg": {
		short: "abcFHIiilNnoPpqsSUvwx0", value: "etTr", count: "ABCmjdM", globs: "g", contents: true, pattern: true,
		globbed: "glob iglob",
		long: `type type-not ignore-case smart-case case-sensitive line-number count count-matches files-with-matches
			files-without-match invert-match word-regexp line-regexp fixed-strings only-matching max-count max-depth
			after-context before-context context regexp multiline multiline-dotall no-heading heading color json stats sort sortr
			files type-list replace pcre2 no-line-number with-filename no-filename quiet trim vimgrep column max-columns
			max-filesize threads no-messages`,
	},
	"find": {names: true, dashed: `H P name iname path ipath wholename regex iregex regextype type maxdepth mindepth depth size
		mtime mmin ctime cmin atime amin newer empty print print0 printf ls prune o or a and not perm user group links
		executable readable writable mount xdev true false quit`},
	"git status": {
		short: "sbvz", rest: "u", contents: true,
		long: "short branch porcelain long verbose untracked-files ignored ignore-submodules column no-column ahead-behind renames no-renames show-stash",
	},
	"git diff": {
		short: "pusawbzMCBRW", rest: "USG", contents: true,
		long: gitShow + " cached staged merge-base ours theirs base",
	},
	"git log":  {short: "pusawbzMCBRWiEFPgmc", rest: "nUSG", contents: true, long: gitWalk},
	"git show": {short: "pusawbzMCBRWm", rest: "nUSG", contents: true, long: gitWalk},
	"git branch": {
		short: "avrli", contents: true,
		long: `list all remotes verbose show-current merged no-merged contains no-contains points-at sort format color no-color
			column no-column abbrev no-abbrev ignore-case`,
	},
	"go build": {names: true, dashed: goBuild},
	"go vet":   {names: true, dashed: goBuild + " c"},
	"go test":  {names: true, dashed: goTest},
	"go list":  {names: true, dashed: goBuild + " m f deps e test versions find compiled retracted"},
	"go env":   {dashed: "json changed"},

	"npm test":      {names: true, long: "silent", check: checkScript},
	"npm run test":  {names: true, long: "silent", check: checkScript},
	"npm run lint":  {names: true, long: "silent", check: checkScript},
	"npm run build": {names: true, long: "silent", check: checkScript},
	"pytest": {
		short: "vqxsl", value: "km", rest: "rn", names: true,
		long: `maxfail lf ff last-failed failed-first tb durations no-header collect-only co exitfirst verbose quiet showlocals
			no-summary color disable-warnings stepwise sw`, check: checkPytest,
	},
}

const testOperators = "e f d r w x s L h z n t p S b c g k u O G N nt ot ef eq ne lt le gt ge a o"

// usageOf finds the usage of a command and its arguments.
func usageOf(words []word) (u usage, args []word, known bool) {
	name := ""
	for i := range min(3, len(words)) {
		if !words[i].exact() {
			break
		}
		name = strings.TrimPrefix(name+" "+words[i].value, " ")
		if found, ok := usages[name]; ok {
			u, args, known = found, words[i+1:], true
		}
	}
	return u, args, known
}

func checkPrintf(args []word) string {
	if len(args) == 0 || !args[0].exact() || strings.HasPrefix(args[0].value, "-") {
		return "the format isn't known before it runs"
	}
	return ""
}

func checkDate(args []word) string {
	for _, a := range args {
		if !strings.HasPrefix(a.value, "+") && !strings.HasPrefix(a.value, "-") {
			return "it may set the clock"
		}
	}
	return ""
}

func checkUniq(args []word) string {
	files := 0
	for _, a := range args {
		if !strings.HasPrefix(a.value, "-") || a.value == "-" {
			files++
		}
	}
	if files > 1 {
		return "its second argument is a file that it writes"
	}
	return ""
}

// checkScript keeps options of a program that isn't known out of npm's scripts.
func checkScript(args []word) string {
	for i, a := range args {
		if a.value != "--" || !a.exact() {
			continue
		}
		for _, passed := range args[i+1:] {
			if strings.HasPrefix(passed.value, "-") {
				return "the option " + passed.text + " is for a program that isn't known"
			}
		}
	}
	return ""
}

// checkPytest refuses a file of further arguments.
func checkPytest(args []word) string {
	for _, a := range args {
		if strings.HasPrefix(a.value, "@") {
			return "it takes further arguments from a file"
		}
	}
	return ""
}
