package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/base/rawtext"
)

// Out is where a verb writes.
type Out struct {
	Program  string    // who speaks; empty: weir
	Data     io.Writer // stdout
	Messages io.Writer // stderr
	JSON     bool      // data is one JSON document
	Quiet    bool      // no messages but errors
	err      error     // of the first Print that failed
	said     []Message // for the document
	pending  []byte    // the document, which waits for what is said after it
}

// A Message is what a verb has said beside its data, as its JSON document has it.
type Message struct {
	Level string `json:"level"` // warning, note or info
	Text  string `json:"text"`
}

// saidMost bounds the messages of one document.
const saidMost = 1000

// Tells reports whether messages go anywhere.
func (o *Out) Tells() bool { return o.JSON || !o.Quiet }

// Say writes a message line. No argument begins another line, but an error that joins others.
func (o *Out) Say(format string, args ...any) {
	if !o.Tells() {
		return
	}
	text := plain.Message(plain.Sprintf(format, args...))
	if o.JSON && len(o.said) < saidMost {
		o.said = append(o.said, messageOf(text))
	}
	if !o.Quiet {
		_, _ = io.WriteString(o.Messages, o.program()+": "+text+"\n") // nobody is left to tell
	}
}

func (o *Out) program() string {
	if o.Program == "" {
		return "weir"
	}
	return o.Program
}

func messageOf(text string) Message {
	for _, level := range []string{"warning", "note"} {
		if rest, ok := strings.CutPrefix(text, level+": "); ok {
			return Message{level, rest}
		}
	}
	return Message{"info", text}
}

// Fail writes an error, whatever was asked to be quiet.
func (o *Out) Fail(err error) {
	_, _ = io.WriteString(o.Messages, plain.Message(plain.Sprintf("%s: %v\n", o.program(), err)))
}

// Print writes a line of data. No argument begins another line: lines that weir has made itself
// are for Text. An error, such as that of a full disk behind stdout, is kept for Err.
func (o *Out) Print(format string, args ...any) { o.Text(plain.Sprintf(format, args...)) }

// Text writes lines of data that are weir's own: whatever is another's in them is in one line
// already, as Table has it.
func (o *Out) Text(lines string) {
	if _, err := io.WriteString(o.Data, plain.Text(strings.TrimSuffix(lines, "\n")+"\n")); err != nil && o.err == nil {
		o.err = fmt.Errorf("write to standard output: %w", err)
	}
}

// Err returns the first error of Print.
func (o *Out) Err() error { return o.err }

// Document sets v as the verb's JSON document. Flush writes it, with the messages so far.
func (o *Out) Document(v any) error {
	if err := o.Flush(); err != nil {
		return err
	}
	b, err := rawtext.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	o.pending = b
	return nil
}

// Flush writes a document that waits. Its last field has what the verb has said.
func (o *Out) Flush() error {
	b := o.pending
	if b == nil {
		return nil
	}
	o.pending = nil
	if object, ok := bytes.CutSuffix(b, []byte("}")); ok && len(o.said) > 0 {
		said, err := json.Marshal(o.said)
		if err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		b, o.said = fmt.Appendf(object, `,"messages":%s}`, said), nil
	}
	if _, err := fmt.Fprintf(o.Data, "%s\n", b); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// Schema is the first field of a JSON document.
type Schema = api.Schema

// SchemaOf names the version of a verb's document.
func SchemaOf(verb string) Schema { return api.SchemaOf(verb) }

// IsTerminal reports whether a file is one.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Table lays rows out in columns, the first row being the heads. Columns named in
// right are flush right. Whatever is in a cell, it is one line.
func Table(rows [][]string, right ...int) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = plain.Line(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], plain.Width(cell))
		}
	}
	flush := map[int]bool{}
	for _, column := range right {
		flush[column] = true
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = plain.Line(cell)
			pad := strings.Repeat(" ", widths[i]-plain.Width(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if flush[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Plural returns "1 process" or "3 processes".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
