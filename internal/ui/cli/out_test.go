package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	got := Table([][]string{{"NAME", "RATE", ""}, {"ü", "10 MB/s", "held"}, {"longer", "1", ""}, {"a\nb", "2", ""}}, 1)
	want := "NAME       RATE\nü       10 MB/s  held\nlonger        1\na\\nb          2\n"
	if got != want {
		t.Errorf("Table:\n%swant:\n%s", got, want)
	}
	if wide, want := Table([][]string{{"NAME", "RATE"}, {"容器", "1"}, {"e\u0301", "2"}}), "NAME  RATE\n容器  1\ne\u0301     2\n"; wide != want {
		t.Errorf("Table:\n%swant:\n%s", wide, want)
	}
	if Table(nil) != "" {
		t.Error("a table of nothing is something")
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 350 * time.Millisecond: "350 ms", 5200 * time.Millisecond: "5.2 s", 121 * time.Second: "2 min 1 s",
		200 * time.Minute: "3 h 20 min", 59*time.Minute + 59*time.Second + 900*time.Millisecond: "1 h 0 min",
		59970 * time.Millisecond: "1 min 0 s", 999600 * time.Microsecond: "1.0 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestFlagTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Millisecond: "10ms", 10 * time.Second: "10s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", time.Hour + time.Second: "1h0m1s",
	} {
		if got := FlagTime(d); got != want {
			t.Errorf("FlagTime(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 groups", 1: "1 group", 2: "2 groups"} {
		if got := Plural(n, "group", "groups"); got != want {
			t.Errorf("Plural(%d) = %q", n, got)
		}
	}
}

func TestOut(t *testing.T) {
	var data, messages strings.Builder
	o := Out{Data: &data, Messages: &messages, JSON: true}
	o.Say("%d groups", 2)
	o.Print("%s", "data")
	o.Print("a\tb\nköln █ %s", "\x1b[2J\r\u202e\xff")
	o.Print("%s is %d", "x\nforged\t", 1)
	o.Quiet = true
	o.Say("nothing")
	o.Fail(errors.Join(errors.New("broken"), &os.PathError{Op: "open", Path: "x\nforged", Err: os.ErrNotExist}))
	if err := o.Document(SchemaOf("x")); err != nil {
		t.Fatal(err)
	}
	o.Say("warning: %s", "late")
	if err := errors.Join(o.Flush(), o.Flush()); err != nil {
		t.Fatal(err)
	}
	if want := "data\na\tb\nköln █ \\x1b[2J\\r\\u202e\\xff\nx\\nforged\\t is 1\n{\"schema\":\"weir.x/1\",\"messages\":[" +
		"{\"level\":\"info\",\"text\":\"2 groups\"},{\"level\":\"info\",\"text\":\"nothing\"},{\"level\":\"warning\",\"text\":\"late\"}]}\n"; data.String() != want {
		t.Errorf("data %q, want %q", data.String(), want)
	}
	if want := "weir: 2 groups\nweir: broken\nopen x\\nforged: file does not exist\n"; messages.String() != want {
		t.Errorf("messages %q, want %q", messages.String(), want)
	}
	if err := o.Document(func() {}); err == nil {
		t.Error("a function became a document")
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := NewProgress(f)
	p.Show("work", 0.5)
	p.Clear()
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("a file got %q, %v", text, err)
	}
}
