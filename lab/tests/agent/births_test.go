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

// lateMost is how many of a hundred programs may write before their rule. On an idle machine none does.
const lateMost = 20

// birthRounds is how often a machine may try that was too busy.
const birthRounds = 3

// From the birth of a container's group, and from the start of its program, which writes at once, to
// its rule: how long that takes, and how many programs wrote before it. weird knows the container
// since it was made. Nobody holds a program back until its rule is there, so a busy machine may let
// some be faster.
func TestAgentBirths(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	w.start()
	n := lab.Times(t, "WEIR_BIRTHS", 50)
	late := g.births(t, disk, n, 1)
	for round := 2; 100*late > lateMost*n && round <= birthRounds; round++ {
		lab.AwaitQuiet(t)
		late = g.births(t, disk, n, round)
	}
	if 100*late > lateMost*n {
		lab.Measures(t)
		t.Errorf("that is more than %d %%, %d times", lateMost, birthRounds)
	}
	if c := w.status().Counts; c.Failures != 0 || c.Drifts != 0 {
		t.Errorf("%+v\n%s", c, w.lately())
	}
}

// births starts n containers, logs how long each took to have its rule, and returns how many programs
// wrote before it.
func (g *engine) births(t *testing.T, disk *lab.TestDisk, n, round int) int {
	t.Helper()
	var fromGroup, fromStart, late []time.Duration
	var running []*container
	first := 0
	for i := range n {
		next := time.Now().Add(time.Second / birthsEachSec)
		c := g.create(fmt.Sprintf("web-%d-%d", round, i), nil, "writer", disk.Node)
		lab.Await(t, patience, "weird to know the container", func() bool { return g.isLearnt(c) })
		g.bear(c)
		born := now()
		ruled := make(chan int64, 1)
		go func() { ruled <- g.firstRule(c, disk, smallRate) }()
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
		at := <-ruled
		if at == 0 {
			t.Fatalf("%s has no rule after %v", c.name, patience)
		}
		line, err := said.ReadString('\n')
		wrote, bad := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || bad != nil {
			t.Fatalf("%q, %v", line, err)
		}
		fromGroup, fromStart = append(fromGroup, time.Duration(at-born)), append(fromStart, time.Duration(at-began))
		if wrote < at {
			first++
			late = append(late, time.Duration(at-wrote))
		}
		running = append(running, c) // it goes on for a second: weird's pacer comes after the rule
		if len(running) > birthsEachSec {
			g.end(running[0])
			running = running[1:]
		}
		time.Sleep(time.Until(next))
	}
	logTimes(t, "from the group's birth to its rule", fromGroup)
	logTimes(t, "from the program's start to its rule", fromStart)
	t.Logf("%d of %d programs wrote before their rule", first, n)
	if first > 0 {
		logTimes(t, "so long before", late)
	}
	for _, c := range running {
		g.end(c)
	}
	return first
}

// firstRule waits until a container has a rule, and returns when that was, by the clock of now; 0: it
// has none for too long.
func (g *engine) firstRule(c *container, disk *lab.TestDisk, wbps uint64) int64 {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Microsecond) {
		if got, err := g.rule(c, disk); err == nil && got == wbps {
			return now()
		}
	}
	return 0
}
