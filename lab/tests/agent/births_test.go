package agent

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// birthsEachSec is how many containers start in a second.
const birthsEachSec = 20

// From the start of a container's program, which writes at once, to its rule: how long that takes,
// and how many programs wrote before it. Nobody holds a program back until its rule is there, so
// that is measured and not promised.
func TestAgentBirths(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	w.start()
	n := lab.Times(t, "WEIR_BIRTHS", 50)
	var fromGroup, fromStart, late []time.Duration
	first := 0
	for i := range n {
		next := time.Now().Add(time.Second / birthsEachSec)
		c := g.make(fmt.Sprint("web-", i), nil, "writer", disk.Node)
		born := now()
		out, err := c.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		g.join(c)
		said := bufio.NewReader(out)
		if line, err := said.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		began := now()
		g.list(c)
		if _, err := io.WriteString(c.in.(io.Writer), "\n"); err != nil {
			t.Fatal(err)
		}
		g.awaitRules(lab.Patience(t, patience), disk, smallRate, c)
		ruled := now()
		line, err := said.ReadString('\n')
		wrote, bad := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || bad != nil {
			t.Fatalf("%q, %v", line, err)
		}
		fromGroup, fromStart = append(fromGroup, time.Duration(ruled-born)), append(fromStart, time.Duration(ruled-began))
		if wrote < ruled {
			first++
			late = append(late, time.Duration(ruled-wrote))
		}
		g.end(c)
		time.Sleep(time.Until(next))
	}
	logTimes(t, "from the group's birth to its rule", fromGroup)
	logTimes(t, "from the program's start to its rule", fromStart)
	t.Logf("%d of %d programs wrote before their rule", first, n)
	if first > 0 {
		logTimes(t, "so long before", late)
	}
	if c := w.status().Counts; c.Failures != 0 {
		t.Errorf("%+v\n%s", c, w.lately())
	}
}
