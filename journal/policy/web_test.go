package policy

import "testing"

// However an address spells its host, a rule that denies the host holds, and one that allows
// all hosts doesn't allow an address that can be read in several ways.
//
// proves PER-1
func TestWeb_Hosts(t *testing.T) {
	t.Parallel()
	rules := []Rule{{PermissionWeb, "*", Allow}, {PermissionWeb, "evil.com", Deny}, {PermissionWeb, "Bücher.example", Deny}, {PermissionWeb, "Port.example:443", Deny}, {PermissionWeb, "127.0.0.1", Deny}, {PermissionWeb, "*.Wild.example", Deny}}
	for address, want := range map[string]Action{
		"https://evil.com/": Deny, "https://EVIL.com/": Deny, "https://evil.com:443/": Deny, "http://evil.com:80": Deny, "https://evil.com:0443/": Deny, "https://evil.com:/": Deny, "https://evil.com./": Deny, "https://evil.com.:443/x": Deny, "HTTPS://Evil.Com?x": Deny, "https://evil.com#x": Deny,
		"https://evil.com:8443/": Deny, "http://evil.com:443/": Deny, "https://EVIL.com.:8080": Deny,
		"https://user@evil.com/": Deny, "https://good.com@evil.com/": Deny, "https://a@b@evil.com/": Deny, `https://evil.com\@good.com/`: Deny, `https://good.com\@evil.com/`: Deny, `https:\\evil.com\x`: Deny, `https://good.com\evil.com`: Deny,
		"https:evil.com": Deny, "https:/evil.com": Deny, "https:///evil.com": Deny, " https://evil.com": Deny, "https://ev\til.com/": Deny, "https://evil.com\n": Deny, "https://%65vil.com/": Deny, "https://evil%2Ecom": Deny,
		"https://ｅvil.com/": Deny, "https://evil。com/": Deny, "https://bücher.example/": Deny, "https://BÜCHER.example/": Deny, "https://xn--bcher-kva.example/": Deny, "https://XN--BCHER-KVA.example./": Deny, "https://port.example": Deny, "https://a.wild.example": Deny, "https://127.0.0.1:443": Deny,
		"evil.com": Deny, "//evil.com/": Ask, "ftp://evil.com/": Ask, "data:text/plain,x": Ask, "": Ask, "https://": Ask, "https://good.com:x/": Ask, "https://u:p@good.com/": Ask, `https://good.com\x`: Ask, "https://good.com /x": Ask, "https://good .com/": Ask, "https://good%2ecom/": Ask, "https://2130706433/": Ask, "https://0x7f.1/": Ask, "https://127.1": Ask, "https://[::ffff:127.0.0.1]/": Ask, "https://[::1": Ask, "https://[fe80::1%25eth0]/": Ask, "https://a..b/": Ask, "https://a,b/": Ask, "https://*/": Ask, "https://good.com/%zz": Ask,
		"https://good.com/x?y=z@w#v": Allow, "https://GOOD.com:8443/": Allow, "http://localhost:3000": Allow, "https://münchen.example/ä": Allow, "https://[::1]:80/": Allow, "https://10.0.0.1/": Allow, "https://a_b.example": Allow,
	} {
		if v := Evaluate(AskWrites, rules, WebResources(address)); v.Action != want {
			t.Errorf("%q: %s, want %s: %+v", address, v.Action, want, WebResources(address))
		}
	}
	one := []Rule{{PermissionWeb, "Good.com", Allow}, {PermissionWeb, "good.com:3000", Allow}}
	for address, want := range map[string]Action{"https://good.com": Allow, "https://GOOD.com.:443": Allow, "https://good.com:3000": Allow, "https://good.com:3001": Ask, "https://good.com.evil.com": Ask} {
		if v := Evaluate(AskWrites, one, WebResources(address)); v.Action != want {
			t.Errorf("%q: %s, want %s", address, v.Action, want)
		}
	}
}
