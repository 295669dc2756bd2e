package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/top"
)

// A list is the groups of a host at one time.
type list struct {
	Time    string
	Host    string // what is neither a disk nor a group
	Window  string // that rates are over
	Disks   []disk
	Rows    []row
	LeftOut int // groups beyond rowsMost
	Plans   bool
	version string
}

// A listEvent is what a stream sends of a list.
type listEvent struct {
	Version string   `json:"version"`
	Time    string   `json:"time"`
	Host    string   `json:"host"`
	Window  string   `json:"window"`
	Disks   []disk   `json:"disks"`
	Whole   bool     `json:"whole"` // else the rows are those that have changed
	Rows    []row    `json:"rows"`
	Gone    []string `json:"gone"` // their ids
	LeftOut int      `json:"leftOut"`
	Plans   bool     `json:"plans"`
}

// listOf makes the list of a snapshot. more is put into links to groups.
func (p *Page) listOf(s *watch.Snapshot, takes func(*watch.Group) bool, plans map[string]string, more url.Values) list {
	l := list{Time: clock(s.At), Host: top.HostLine(s), Window: cli.Duration(s.Window), Disks: disksOf(s), Rows: []row{}, Plans: len(plans) > 0, version: p.o.Version}
	var groups []*watch.Group
	for _, g := range s.Groups {
		if takes(g) {
			groups = append(groups, g)
		}
	}
	if len(groups) > rowsMost {
		// Those that are far from their limits are left out.
		slices.SortStableFunc(groups, func(a, b *watch.Group) int {
			return cmp.Compare(top.FigureOf(b, top.Limit), top.FigureOf(a, top.Limit))
		})
		l.LeftOut, groups = len(groups)-rowsMost, groups[:rowsMost]
	}
	for _, g := range groups {
		l.Rows = append(l.Rows, rowOf(g, cut(plans[g.Path]), more))
	}
	return l
}

// measure adds what was measured of the groups.
func (l list) measure(by measured) {
	for i := range l.Rows {
		l.Rows[i].Measured = top.MeasuredWord(by[l.Rows[i].ID])
	}
}

// since makes the event for who has a former list; nil: none.
func (l list) since(before *frame) []byte {
	e := listEvent{Version: l.version, Time: l.Time, Host: l.Host, Window: l.Window, Disks: l.Disks, Whole: before == nil, Rows: l.Rows, Gone: []string{}, LeftOut: l.LeftOut, Plans: l.Plans}
	if before != nil {
		had := map[string]row{}
		for _, r := range before.list.Rows {
			had[r.ID] = r
		}
		e.Rows = []row{}
		for _, r := range l.Rows {
			if old, is := had[r.ID]; !is || old != r {
				e.Rows = append(e.Rows, r)
			}
			delete(had, r.ID)
		}
		for id := range had {
			e.Gone = append(e.Gone, id)
		}
		slices.Sort(e.Gone)
	}
	return event(listKind, e)
}

func clock(t time.Time) string { return t.Format("15:04:05") }

// A column is a head of the list's table.
type column struct {
	Name, Title, Class string
	Link               string // sorts by it
	Sorted             string // "ascending", "descending" or ""
	Help               string
}

// A listPage is what the template shows.
type listPage struct {
	head
	list
	Columns  []column
	Sort     string
	Filter   string
	Active   bool
	Now      string // the time that is shown, to be written into its field; empty: now
	Steps    []step // to other times
	Recorded bool
	Empty    string // why there are no rows
}

// Blank and BlankDisk are what the script copies.
func (listPage) Blank() row      { return row{} }
func (listPage) BlankDisk() disk { return disk{} }

// A step leads to another time of history.
type step struct{ Text, Link string }

// list answers with the list, of now or of a time that was recorded.
func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o := top.Options{Reverse: q.Get("reverse") != "", Filter: q.Get("filter"), Active: q.Get("active") != ""}
	var err error
	if o.Sort, err = top.ParseColumn(cmp.Or(q.Get("sort"), string(top.Limit))); err != nil {
		p.refuse(w, http.StatusBadRequest, message(err))
		return
	}
	page := listPage{head: p.head("", true), Sort: string(o.Sort), Filter: o.Filter, Active: o.Active, Recorded: p.o.History != ""}
	var s *watch.Snapshot
	more := url.Values{}
	plans := map[string]string{}
	if at := q.Get("at"); at != "" {
		when, err := history.ParseWhen("at", at, time.Now())
		if err == nil {
			s, err = p.at(r.Context(), when)
		}
		if err != nil {
			p.fail(w, err)
			return
		}
		page.Live, page.Now = false, s.At.Format("2006-01-02 15:04:05")
		page.Steps = stepsAround(s.At, q)
		more.Set("at", page.Now)
	} else if s, err = p.snapshot(r.Context()); err != nil {
		p.fail(w, err)
		return
	} else {
		plans = p.o.Plans.Wanted(r.Context(), s)
	}
	shown := map[string]bool{}
	groups := o.Groups(s)
	for _, g := range groups {
		shown[g.Path] = true
	}
	page.list = p.listOf(s, func(g *watch.Group) bool { return shown[g.Path] }, plans, more)
	if page.Live {
		page.measure(p.follow.measured())
	}
	page.order(groups)
	page.Columns = columnsOf(o, q)
	if len(page.Rows) == 0 {
		page.Empty = emptyText(o)
	}
	p.show(w, "list.html", page)
}

// order sorts the rows as groups are.
func (l *listPage) order(groups []*watch.Group) {
	at := map[string]int{}
	for i, g := range groups {
		at[idOf(g.Path)] = i
	}
	slices.SortStableFunc(l.Rows, func(a, b row) int { return cmp.Compare(at[a.ID], at[b.ID]) })
}

func emptyText(o top.Options) string {
	switch {
	case o.Filter != "":
		return "No group has this text in its name."
	case o.Active:
		return "No group did any I/O."
	}
	return "No group has a limit, and none did any I/O."
}

// columnsOf are the heads, with links that sort by them.
func columnsOf(o top.Options, q url.Values) []column {
	all := []column{
		{Name: string(top.Target), Title: "Target", Class: "target"},
		{Name: string(top.Read), Title: "Read/s", Class: "figure"},
		{Name: string(top.Write), Title: "Write/s", Class: "figure"},
		{Name: string(top.Limit), Title: "Of limit", Class: "limit", Help: "The rate that is nearest to its limit, in percent of the limit."},
		{Name: string(top.Wait), Title: "Wait", Class: "wait", Help: "The share of time in which tasks of the group waited for I/O."},
		{Name: string(top.Dirty), Title: "Dirty", Class: "dirty", Help: "Page cache of the group that is not on disk yet."},
		{Title: "Plan", Class: "plan"},
		{Title: "Expected to hold", Class: "held", Help: "Which I/O the limits are expected to hold. It is not a measurement; weir prove measures."},
	}
	for i := range all {
		c := &all[i]
		if c.Name == "" {
			continue
		}
		to := url.Values{}
		for k, v := range q {
			to[k] = v
		}
		to.Set("sort", c.Name)
		to.Del("reverse")
		if c.Name == string(o.Sort) {
			// Names go up, figures go down, until they are reversed.
			down := c.Name != string(top.Target)
			if o.Reverse {
				down = !down
			} else {
				to.Set("reverse", "1")
			}
			c.Sorted = map[bool]string{true: "descending", false: "ascending"}[down]
		}
		c.Link = "/?" + to.Encode()
	}
	return all
}

// stepsAround leads from one time of history to others.
func stepsAround(at time.Time, q url.Values) []step {
	var all []step
	for _, s := range []struct {
		text string
		by   time.Duration
	}{{"1 h earlier", -time.Hour}, {"10 min earlier", -10 * time.Minute}, {"1 min earlier", -time.Minute}, {"1 min later", time.Minute}, {"10 min later", 10 * time.Minute}, {"1 h later", time.Hour}} {
		to := url.Values{}
		for k, v := range q {
			to[k] = v
		}
		to.Set("at", at.Add(s.by).Format("2006-01-02 15:04:05"))
		all = append(all, step{s.text, "/?" + to.Encode()})
	}
	return all
}
