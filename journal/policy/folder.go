package policy

import "strings"

// below judges what is changed with a folder that isn't denied itself: each name that
// lies in it, as that file would be judged, and what a rule says of files that may come
// to lie in it. What is stricter than the folder's own outcome is added to the verdict.
func (e evaluation) below(v *Verdict, folder Resource, action Action) {
	worst, asked := action, 0
	add := func(a Action, d Decision) {
		switch {
		case stricter(action, a) == action:
			return
		case a == Deny:
			v.Denied = append(v.Denied, d)
		default:
			if asked++; asked > mostBelow {
				return
			}
			if asked == 1 && d.Resource.Value != folder.Value { // what is done, beside why it is asked
				v.Asks = ask(v.Asks, e.decision(folder, -1))
			}
			v.Asks = ask(v.Asks, d)
		}
		worst = stricter(worst, a)
	}
	for name := range strings.SplitSeq(folder.Names, "\x00") {
		if name != "" {
			add(e.judge(Resource{Permission: folder.Permission, Value: within(folder.Value, name)}))
		}
	}
	if i := e.mayHold(folder, worst); i >= 0 {
		add(e.action(i), e.decision(Resource{Permission: folder.Permission, Value: folder.Value}, i))
	}
	v.Action = stricter(v.Action, worst)
}

// mostBelow is how many of the files in a folder are asked about by their names.
const mostBelow = 20

// mayHold finds the strictest rule that is stricter than an action and speaks of files
// below a folder: by the folder's name, or, if nobody knows all that lies there, by any
// pattern that may fit. -1: there is none. What stands before a rule that matches all of
// the folder says nothing.
func (e evaluation) mayHold(folder Resource, action Action) int {
	start, found := within(folder.Value, ""), -1
	for i := len(e.rules) - 1; i >= 0; i-- {
		rule := e.rules[i]
		if rule.Permission != folder.Permission {
			continue
		}
		all := covers(rule.Pattern, start)
		speaks := all || names(rule.Pattern, start) || folder.Partly && i >= e.own && overlaps(rule.Pattern, start+"*")
		if speaks && stricter(action, e.action(i)) != action {
			action, found = e.action(i), i
		}
		if all {
			break
		}
	}
	return found
}

// within is the path of a name in a folder, as rules see it; of the workspace's own files
// it is the name.
func within(folder, name string) string {
	if folder == "." {
		return name
	}
	return folder + "/" + name
}

// covers reports whether a pattern matches whatever begins so.
func covers(pattern, start string) bool {
	return strings.HasSuffix(pattern, "*") && !strings.HasSuffix(pattern, " *") && Match(pattern, start)
}

// names reports whether a pattern speaks of what begins so, as far as its text is exact.
func names(pattern, start string) bool {
	exact, _, _ := strings.Cut(pattern, "*")
	exact, _, _ = strings.Cut(exact, "?")
	return exact != "" && strings.HasPrefix(exact, start)
}
