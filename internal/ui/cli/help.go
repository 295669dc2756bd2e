package cli

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/plain"
)

// Help is written for widthUsual columns where no terminal says how many it has, and for
// widthLeast to widthMost elsewhere: longer lines are hard to read.
const (
	widthLeast = 40
	widthUsual = 80
	widthMost  = 100

	besideLeast = 30 // what there must be beside a flag for its description; else it goes below
)

// HelpWidth is how many columns help is written for: $COLUMNS, the terminal's, or 80.
func HelpWidth(f *os.File) int {
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || width <= 0 {
		width = widthUsual
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			width = int(size.Col)
		}
	}
	return min(max(width, widthLeast), widthMost)
}

// Help is what a verb says of itself, no line longer than width where words allow it.
func Help(cmd *cobra.Command, width int) string {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	b.WriteString(Wrap(text, width) + "\n\nUsage:\n")
	if cmd.Runnable() {
		b.WriteString(wrapLine(cmd.UseLine(), "  ", "      ", width) + "\n")
	}
	verbs := shownVerbs(cmd)
	if len(verbs) > 0 {
		b.WriteString("  " + cmd.CommandPath() + " COMMAND\n")
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if len(verbs) > 0 {
		b.WriteString("\nCommands:\n")
		for _, c := range verbs {
			name := "  " + c.Name() + strings.Repeat(" ", c.NamePadding()-len(c.Name())) + " "
			b.WriteString(wrapLine(c.Short, name, strings.Repeat(" ", len(name)), width) + "\n")
		}
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + strings.TrimRight(flagUsages(cmd.LocalFlags(), width), " \n") + "\n")
	}
	if cmd.HasAvailableInheritedFlags() {
		b.WriteString("\nGlobal flags:\n" + strings.TrimRight(flagUsages(cmd.InheritedFlags(), width), " \n") + "\n")
	}
	if len(verbs) > 0 {
		b.WriteString("\n\"" + cmd.CommandPath() + " COMMAND --help\" describes a command.\n")
	}
	return b.String()
}

// flagIndent is before a description that is below its flag.
const flagIndent = "          "

// flagUsages lists flags, each with its description beside it, or below it where that leaves too
// few columns.
func flagUsages(flags *pflag.FlagSet, width int) string {
	var b strings.Builder
	below := false
	lines := strings.Split(flags.FlagUsages(), "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		line := lines[0]
		lines = lines[1:]
		_, usage := pflag.UnquoteUsage(f)
		at := strings.Index(line, usage)
		below = below || width-at < besideLeast
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n" + wrapLine(line[at:], flagIndent, flagIndent, width) + "\n")
	})
	if !below {
		return flags.FlagUsagesWrapped(width)
	}
	return b.String()
}

func shownVerbs(cmd *cobra.Command) []*cobra.Command {
	var shown []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			shown = append(shown, c)
		}
	}
	return shown
}

// Wrap breaks text into lines of at most width columns. A line break within a paragraph is
// a space; a line that begins with one stays as it is.
func Wrap(text string, width int) string {
	var lines []string
	open := "" // the paragraph so far
	end := func() {
		if open != "" {
			lines = append(lines, wrapLine(open, "", "", width))
		}
		open = ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case line == "" || line[0] == ' ':
			end()
			lines = append(lines, line)
		case open == "":
			open = line
		default:
			open += " " + line
		}
	}
	end()
	return strings.Join(lines, "\n")
}

// wrapLine breaks one line between words; first begins the first line, later the others.
func wrapLine(text, first, later string, width int) string {
	var b strings.Builder
	column := plain.Width(first)
	b.WriteString(first)
	for i, w := range strings.Fields(text) {
		n := plain.Width(w)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + later)
			column = plain.Width(later)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += n
	}
	return b.String()
}
