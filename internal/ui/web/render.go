package web

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"sync"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/history"
)

// A head is what each page has.
type head struct {
	Title   string
	Name    string // of the host
	Live    bool   // whether a stream keeps the page true
	Still   bool   // it answers a question, which is not to be asked again each few seconds
	Version string
}

func (p *Page) head(title string, live bool) head {
	return head{Title: title, Name: cut(p.o.Name), Live: live, Version: p.o.Version}
}

// templates are parsed when the first page is shown.
var templates = sync.OnceValue(func() *template.Template { return parse() })

// show answers with a page, once all of it is made.
func (p *Page) show(w http.ResponseWriter, name string, data any) {
	p.render(w, http.StatusOK, name, data)
}

func (p *Page) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "make the page: "+message(err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that has gone needs no answer
}

// A refusal is a page that says why there is none.
type refusal struct {
	head
	Status int
	Words  string
	Why    string
}

func (p *Page) refuse(w http.ResponseWriter, status int, why string) {
	p.render(w, status, "refusal.html", refusal{p.head(http.StatusText(status), false), status, http.StatusText(status), why})
}

// fail answers with what went wrong.
func (p *Page) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var nothing *history.NothingError
	switch {
	case errors.Is(err, errBusy):
		status = http.StatusServiceUnavailable
	case errors.Is(err, errNoHistory), errors.As(err, &nothing):
		status = http.StatusNotFound
	case errors.Is(err, context.Canceled):
		return // nobody waits for an answer
	case fault.ClassOf(err) == fault.WrongUse:
		status = http.StatusBadRequest
	}
	p.refuse(w, status, message(err))
}
