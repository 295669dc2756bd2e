// Package bootline is what the host tells a guest on the kernel's command line:
// words "weir.KEY=VALUE" among the kernel's own. Values that may hold spaces or
// quotes are in base64, so that no kernel's quoting rules matter.
package bootline

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-io/weir/lab/environ"
)

// Line is one guest's orders.
type Line struct {
	Guest   string
	Lane    string
	Mode    environ.Mode
	IOMount string // where the io (v2) or blkio (v1) hierarchy goes; empty for the usual place
	Run     string // go test's -run
	Short   bool
	Only    []string      // what tests must ask for
	Timeout time.Duration // of all tests
	Slow    float64       // of the machine (guest.Job)
	Piece   time.Duration // likewise
	Disks   []string      // names in the order of attachment: "job", "out", then "FS-NUMBER"
}

const prefix = "weir."

// Words encodes the line.
func (l Line) Words() []string {
	words := []string{
		prefix + "guest=" + l.Guest,
		prefix + "lane=" + l.Lane,
		prefix + "mode=" + string(l.Mode),
		prefix + "timeout=" + strconv.Itoa(int(l.Timeout.Seconds())),
		prefix + "slow=" + strconv.FormatFloat(l.Slow, 'f', 2, 64),
		prefix + "piece=" + l.Piece.String(),
		prefix + "disks=" + strings.Join(l.Disks, ","),
	}
	if l.IOMount != "" {
		words = append(words, prefix+"iomount="+l.IOMount)
	}
	if l.Run != "" {
		words = append(words, prefix+"run="+base64.RawURLEncoding.EncodeToString([]byte(l.Run)))
	}
	if len(l.Only) > 0 {
		words = append(words, prefix+"only="+strings.Join(l.Only, ","))
	}
	if l.Short {
		words = append(words, prefix+"short=1")
	}
	return words
}

// Parse finds the words in a kernel's command line and passes over all others.
func Parse(cmdline string) (Line, error) {
	var l Line
	for word := range strings.FieldsSeq(cmdline) {
		rest, ours := strings.CutPrefix(word, prefix)
		if !ours {
			continue
		}
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return Line{}, fmt.Errorf("parse %q: no value", word)
		}
		if err := l.set(key, value); err != nil {
			return Line{}, fmt.Errorf("parse %q: %w", word, err)
		}
	}
	return l, nil
}

func (l *Line) set(key, value string) error {
	switch key {
	case "guest":
		l.Guest = value
	case "lane":
		l.Lane = value
	case "mode":
		l.Mode = environ.Mode(value)
	case "iomount":
		l.IOMount = value
	case "short":
		l.Short = value == "1"
	case "only":
		l.Only = strings.Split(value, ",")
	case "disks":
		l.Disks = strings.Split(value, ",")
	case "timeout":
		seconds, err := strconv.Atoi(value)
		l.Timeout = time.Duration(seconds) * time.Second
		return err
	case "slow":
		slow, err := strconv.ParseFloat(value, 64)
		l.Slow = slow
		return err
	case "piece":
		piece, err := time.ParseDuration(value)
		l.Piece = piece
		return err
	case "run":
		data, err := base64.RawURLEncoding.DecodeString(value)
		l.Run = string(data)
		return err
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}
