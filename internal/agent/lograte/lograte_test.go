package lograte

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/lab"
)

func TestRate(t *testing.T) {
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(New(slog.NewTextHandler(&text, nil), 2, 10))
		with := log.With("a", 1).WithGroup("g")
		for i := range 50 {
			log.Info(fmt.Sprint("x", i))
			with.Info(fmt.Sprint("y", i))
		}
		if n := strings.Count(text.String(), "\n"); n != 10 {
			t.Errorf("%d lines at once", n)
		}
		text.Reset()
		time.Sleep(3 * time.Second)
		for range 20 {
			log.Info("z")
		}
		if got := text.String(); strings.Count(got, "\n") != 6 || strings.Count(got, "lines_left_out=90\n") != 1 || strings.Count(got, "lines_left_out") != 1 {
			t.Error(got)
		}
		time.Sleep(time.Hour)
		text.Reset()
		for range 20 {
			log.Info("z")
		}
		if got := text.String(); strings.Count(got, "\n") != 10 {
			t.Error(got)
		}
	})
}
