package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/plain"
)

// Repeat prints what once prints, again and again, until Ctrl-C or an error: a new one begins as soon
// as the last has ended, and at the earliest a time after its beginning. On a terminal each takes the
// place of the last. Elsewhere there is an empty line between two, and between two JSON documents
// nothing. Ctrl-C is no error.
func (o *Out) Repeat(ctx context.Context, every time.Duration, once func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT)
	defer stop()
	r := repeating{Out: o, data: o.Data, messages: o.Messages}
	defer func() { o.Data, o.Messages = r.data, r.messages }()
	if f, is := o.Data.(*os.File); is && !o.JSON && IsTerminal(f) && os.Getenv("TERM") != "dumb" {
		r.screen = f
	}
	for {
		next := time.After(every)
		if err := r.print(ctx, once); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done(): // what was said of an output that Ctrl-C ended is of no interest
			if r.screen != nil {
				_, _ = io.WriteString(r.data, "\n") // after the terminal's ^C
			}
			return o.err
		case <-next:
		}
	}
}

// A repeating is an output with what was printed last.
type repeating struct {
	*Out
	data, messages io.Writer
	screen         *os.File        // the terminal on which each output takes the place of the last; nil: none does
	shown          []string        // the lines of the last output, if nothing is below them
	said           map[string]bool // the messages beside it
	again          bool            // there was one
}

// print prints one output, once it is whole.
func (r *repeating) print(ctx context.Context, once func(context.Context) error) error {
	var data, messages bytes.Buffer
	r.Data, r.Messages = &data, &messages
	err := once(ctx)
	if err == nil {
		err = r.Flush()
	}
	r.Data, r.Messages = r.data, r.messages
	if ctx.Err() != nil && err != nil {
		return err
	}
	r.say(messages.String())
	if err == nil && r.err == nil {
		r.err = r.write(data.String())
	}
	if err == nil {
		err = r.err
	}
	return err
}

// say writes the messages that were not said beside the last output: they would be the same for hours.
func (r *repeating) say(messages string) {
	said, news := map[string]bool{}, ""
	for line := range strings.Lines(messages) {
		if !r.said[line] {
			news += line
		}
		said[line] = true
	}
	r.said = said
	if news == "" {
		return
	}
	if f, is := r.messages.(*os.File); is && r.screen != nil && IsTerminal(f) {
		r.shown = nil // they stay, between two outputs
	}
	_, _ = io.WriteString(r.messages, news) // nobody is left to tell
}

// write writes one output.
func (r *repeating) write(text string) error {
	switch {
	case r.screen != nil:
		text = r.place(text)
	case r.again && !r.JSON:
		text = "\n" + text
	}
	r.again = true
	if _, err := io.WriteString(r.data, text); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// place puts a text where the last one is, as far as the terminal has rows for it.
func (r *repeating) place(text string) string {
	columns, most := 80, 24
	if size, err := unix.IoctlGetWinsize(int(r.screen.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 1 {
		columns, most = int(size.Col), int(size.Row)
	}
	var b strings.Builder
	if n := rows(r.shown, columns); n > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", n) // up to its first row, and clear from there
	}
	r.shown = fit(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), columns, most-1) // the cursor takes a row
	return b.String() + strings.Join(r.shown, "\n") + "\n"
}

// fit leaves out the last lines that there are no rows for, and says how many.
func fit(lines []string, columns, most int) []string {
	if rows(lines, columns) <= most {
		return lines
	}
	for n := len(lines) - 1; n > 0; n-- {
		short := append(lines[:n:n], fmt.Sprintf("… %s", Plural(len(lines)-n, "more line", "more lines")))
		if rows(short, columns) <= most {
			return short
		}
	}
	return lines[:1]
}

// rows is how many rows lines take on a terminal.
func rows(lines []string, columns int) (n int) {
	for _, line := range lines {
		n += max(1, (plain.Width(line)+columns-1)/columns)
	}
	return n
}
