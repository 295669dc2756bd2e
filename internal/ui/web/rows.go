package web

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/url"
	"path"
	"strconv"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/top"
)

// A row is a group in the list: text for the cells, and what the script sorts and filters by. The
// template and the stream show the same rows.
type row struct {
	ID       string `json:"id"` // of the group's path
	Link     string `json:"link"`
	Target   string `json:"target"`
	Path     string `json:"path"`
	Read     string `json:"read"`
	ReadOps  string `json:"readOps"`
	Write    string `json:"write"`
	WriteOps string `json:"writeOps"`
	Key      string `json:"key"`     // of the nearest limit; empty: no rate has one
	Percent  string `json:"percent"` // of that limit
	Bar      int    `json:"bar"`     // the same, up to 100
	Wait     string `json:"wait"`
	Dirty    string `json:"dirty"`
	Plan     string `json:"plan"`
	Held     string `json:"held"`
	Look     string `json:"look"`     // "", "not-held" or "exceeded"
	Badge    string `json:"badge"`    // the same in words
	Measured string `json:"measured"` // whether the limits are held; empty: nothing is told
	Moves    bool   `json:"moves"`
	Limited  bool   `json:"limited"`
	// Figures are what is sorted by, in the order of the columns, but for the name.
	Figures [5]float64 `json:"figures"`
}

// idOf is a short name for a path, which is no secret. Nobody can make a path with another's id, whose
// row it would take.
func idOf(path string) string {
	h := sha256.Sum256([]byte(path))
	return base64.RawURLEncoding.EncodeToString(h[:15])
}

// linkTo is the address of a group's page.
func linkTo(path string, more url.Values) string {
	q := url.Values{"cgroup": {path}}
	for k, v := range more {
		q[k] = v
	}
	return "/group?" + q.Encode()
}

// lookWord is the word for a look in the script and the style sheet.
func lookWord(l top.Look) string {
	return map[top.Look]string{top.NotHeld: "not-held", top.Exceeded: "exceeded"}[l]
}

// badge says a look in words, in the column of what is expected to hold: nothing is told by a colour
// alone.
func badge(l top.Look) string {
	return map[top.Look]string{top.NotHeld: "not all", top.Exceeded: "over its limit"}[l]
}

func rowOf(g *watch.Group, plan string, more url.Values) row {
	f := top.FiguresOf(g)
	sum, _ := g.Sum()
	r := row{ID: idOf(g.Path), Link: linkTo(g.Path, more), Target: cut(g.Target), Path: cut(g.Path), Read: f.Read, ReadOps: f.ReadOps, Write: f.Write, WriteOps: f.WriteOps,
		Wait: f.Wait, Dirty: f.Dirty, Plan: plan, Held: cut(f.Held), Look: lookWord(top.LookOf(g)), Badge: badge(top.LookOf(g)), Moves: sum != (watch.Rates{}), Limited: g.Limited()}
	switch _, k, percent, known := g.Nearest(); {
	case known:
		r.Key, r.Percent, r.Bar = top.KeyText(k), top.PercentText(percent), int(math.Round(min(percent, 100)))
	case g.Limited():
		r.Percent = "no rate"
	default:
		r.Percent = "–"
	}
	for i, c := range []top.Column{top.Read, top.Write, top.Limit, top.Wait, top.Dirty} {
		r.Figures[i] = math.Round(100*top.FigureOf(g, c)) / 100
	}
	return r
}

// A disk is a busy disk above the list.
type disk struct {
	Name  string `json:"name"`
	Use   string `json:"use"`
	Bar   int    `json:"bar"`
	Queue string `json:"queue"`
	Read  string `json:"read"`
	Write string `json:"write"`
}

// disksMost bounds what stands above the list.
const disksMost = 6

func disksOf(s *watch.Snapshot) []disk {
	all := []disk{}
	for _, d := range top.BusyDisks(s, disksMost) {
		all = append(all, disk{Name: cut(path.Base(d.Node)), Use: top.PercentText(d.Use), Bar: int(math.Round(min(d.Use, 100))), Queue: strconv.FormatFloat(d.Queue, 'f', 1, 64),
			Read: limit.FormatMeasured(d.Rates.RBPS) + "/s", Write: limit.FormatMeasured(d.Rates.WBPS) + "/s"})
	}
	return all
}
