package policy

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// WebResources are the resources of fetching an address: its host, as all spellings of it
// are written one way, in lower case, without a dot at its end, its own port or what
// encodes its letters. With another port it is host:port, which a rule that denies or asks
// the host holds for as well. An address that some may read otherwise is always asked, and
// each host that it may name is judged.
func WebResources(address string) []Resource {
	scheme, host, port, clean := splitAddress(address)
	if scheme == "" {
		return []Resource{{Permission: PermissionWeb, Value: address, AlwaysAsk: true, Why: "it is no address of the web that can be read"}}
	}
	hosts := []string{host}
	if strings.Contains(host, "@") {
		clean = false
		hosts = append(hosts, host[strings.LastIndex(host, "@")+1:], host[:strings.Index(host, "@")])
	}
	if strings.Contains(host, `\`) { // some end the host there
		clean = false
		before, behind := host[:strings.Index(host, `\`)], host[strings.LastIndex(host, `\`)+1:]
		hosts = append(hosts, before, behind[strings.LastIndex(behind, "@")+1:], before[strings.LastIndex(before, "@")+1:])
	}
	var out []Resource
	for i, h := range hosts {
		if i > 0 {
			h, port = splitPort(h)
		}
		out = append(out, webResource(scheme, h, port, clean && len(hosts) == 1))
	}
	return out
}

// webResource is one host of an address.
func webResource(scheme, host, port string, clean bool) Resource {
	name, sure := WebHost(host)
	r := Resource{Permission: PermissionWeb, Value: name}
	if own := map[string]string{"http": "80", "https": "443"}[scheme]; port != "" && port != own {
		r.Value, r.Also = name+":"+port, name
	}
	if u, err := url.Parse(scheme + "://" + host); !clean || !sure || err != nil || u.User != nil {
		r.AlwaysAsk, r.Why = true, "its address can be read in several ways"
	}
	return r
}

var addressBegins = regexp.MustCompile(`^(?i)(https?):([/\\]*)`)

// splitAddress finds what most would take for the host of an address, with what stands
// before it; clean: it is written as it should be. scheme is "" if it is none of the web.
func splitAddress(address string) (scheme, host, port string, clean bool) {
	text := strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return -1 // browsers leave out most of them
		}
		return r
	}, address)
	begins := addressBegins.FindStringSubmatch(text)
	if begins == nil {
		return "", "", "", false
	}
	rest := text[len(begins[0]):]
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		rest = rest[:at]
	}
	if rest == "" {
		return "", "", "", false
	}
	_, err := url.Parse(address)
	clean = err == nil && begins[2] == "//" && text == address
	host, port = splitPort(rest)
	return strings.ToLower(begins[1]), host, port, clean
}

var portEnds = regexp.MustCompile(`:0*([0-9]*)$`)

// splitPort cuts the port off, which isn't there if it is empty.
func splitPort(text string) (host, port string) {
	found := portEnds.FindStringSubmatchIndex(text)
	if found == nil {
		return text, ""
	}
	return text[:found[0]], text[found[2]:found[3]]
}

var (
	profile   = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())
	numberEnd = regexp.MustCompile(`(^|\.)(0x[0-9a-f]*|[0-9]+)$`)
	plainHost = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)
)

// WebHost writes a host one way; sure: all read it so.
func WebHost(host string) (name string, sure bool) {
	sure = true
	if decoded, err := url.PathUnescape(host); err != nil {
		sure = false
	} else if decoded != host {
		host, sure = decoded, false
	}
	if bare, is := strings.CutPrefix(host, "["); is {
		ip, err := netip.ParseAddr(strings.TrimSuffix(bare, "]"))
		if err != nil {
			return strings.ToLower(host), false
		}
		return "[" + ip.String() + "]", sure && ip.Zone() == "" && !ip.Is4In6() && strings.HasSuffix(bare, "]")
	}
	name = lowerHost(host)
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.String(), sure
	}
	return name, sure && !numberEnd.MatchString(name) && plainHost.MatchString(name)
}

// lowerHost is the host's name in lower case and in letters that each resolver takes.
func lowerHost(host string) string {
	name, err := profile.ToASCII(host)
	if err != nil || name == "" {
		name = norm.NFKC.String(host)
	}
	return strings.TrimRight(strings.ToLower(name), ".")
}

// webPattern writes the pattern of a rule as hosts are written.
func webPattern(pattern string) string {
	labels := strings.Split(strings.TrimRight(pattern, "."), ".")
	for i, label := range labels {
		if !strings.ContainsAny(label, "*?:[]") && label != "" {
			labels[i] = lowerHost(label)
		}
	}
	return strings.ToLower(strings.Join(labels, "."))
}
