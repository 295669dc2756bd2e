package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets templates
var files embed.FS

// UPlot is the version of the chart library in assets (MIT; uplot.LICENSE). The files are those of
// its npm package: uPlot.iife.min.js, uPlot.min.css and LICENSE.
const UPlot = "1.6.32"

// types are the kinds of assets. Others are not served.
func typeOf(name string) string {
	return map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8"}[path.Ext(name)]
}

// asset answers with a file of assets; false: there is none.
func asset(w http.ResponseWriter, r *http.Request) bool {
	name, is := strings.CutPrefix(r.URL.Path, "/assets/")
	if !is || name != path.Base(name) || typeOf(name) == "" {
		return false
	}
	text, err := files.ReadFile("assets/" + name)
	if err != nil {
		return false
	}
	w.Header().Set("Content-Type", typeOf(name))
	if r.URL.Query().Get("v") == sum(text) {
		w.Header().Set("Cache-Control", "max-age=31536000, immutable") // its address has its content's sum
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
	return true
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:6])
}

// address is where an asset is, with a sum of it: a browser that has it need not ask again.
func address(name string) (string, error) {
	text, err := files.ReadFile("assets/" + name)
	return "/assets/" + name + "?v=" + sum(text), err
}

// parse makes the templates. A mistake in them is one of the program.
func parse() *template.Template {
	t := template.New("").Funcs(template.FuncMap{"asset": address})
	return template.Must(t.ParseFS(files, "templates/*.html"))
}
