package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy is what a browser may load for the page: what the page's own server has, and no more.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// guard gives an answer its headers, and refuses what is not for the page. It reports whether the
// request is to be answered.
func (p *Page) guard(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		p.refuse(w, http.StatusMethodNotAllowed, r.Method+": this can only be read (GET).")
	case !p.o.AnyName && !p.isOwn(r.Host):
		p.refuse(w, http.StatusMisdirectedRequest, cut(r.Host)+" is not this host's name. Write its address, or "+p.ownName()+".")
	case isOthers(r):
		p.refuse(w, http.StatusForbidden, "Another page asked for this.")
	default:
		return true
	}
	return false
}

// isOwn reports whether a Host header names this host: by an address, as localhost, or by its own
// name. An attacker's page can have a name of its own lead to 127.0.0.1, and read what is there as if
// it were the attacker's (DNS rebinding); such a name is in the header.
func (p *Page) isOwn(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
		if inner, is := strings.CutPrefix(host, "["); is {
			if name, is = strings.CutSuffix(inner, "]"); !is {
				return false
			}
		}
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return name == "localhost" || name != "" && name == strings.ToLower(p.o.Name)
}

func (p *Page) ownName() string {
	if p.o.Name == "" {
		return "localhost"
	}
	return p.o.Name
}

// isOthers reports whether a page of another origin asked, for anything but to be left for this one
// (https://www.w3.org/TR/fetch-metadata/). Another port of this host is another origin. Old browsers
// and programs do not say.
func isOthers(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// isLink reports whether a page of another origin led here.
func isLink(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return true
}
