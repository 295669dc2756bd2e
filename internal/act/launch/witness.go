package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// WitnessArg is the argument that runs weir as a witness: see Witness.
const WitnessArg = background.Witness

// A witness is a process in weir's process group that knows which signals went to the whole
// group. The command has got such a signal already (Ctrl-C, a hangup, kill %1). A signal to
// weir alone has to be passed on, and os/signal does not tell which it was. (In a process group
// of its own the command would take the terminal from the rest of a pipeline, and Ctrl-C from
// the script that weir is in.) The witness waits on a pipe, so it ends with weir.
type witness struct {
	cmd      *exec.Cmd
	question io.WriteCloser
	answer   *os.File
	gone     bool
}

// The kernel signals the members of a group within microseconds. If the witness has not got a
// signal within lateness after weir's question, it was for weir alone; answerWait is for a
// witness that somebody has stopped.
const (
	lateness   = 100 * time.Millisecond
	answerWait = time.Second
	creditLife = time.Second // of a signal that weir never asked for: it was for the witness alone
)

// Witness runs a witness. It reports that it is ready. Then, for each signal number that it
// reads, it answers 1 if that signal has arrived lately and since the last question about it,
// and 0 if not.
func Witness(questions io.Reader, answers io.Writer) {
	signals := make(chan os.Signal, 64)
	for _, s := range passed {
		signal.Notify(signals, s)
	}
	signal.Notify(signals, unix.SIGTSTP) // Ctrl-Z would stop it
	asked := make(chan byte)
	go func() {
		defer close(asked)
		for s := make([]byte, 1); ; {
			if _, err := io.ReadFull(questions, s); err != nil {
				return
			}
			asked <- s[0]
		}
	}()
	var came [65]time.Time // by signal number
	note := func(s os.Signal) { came[s.(syscall.Signal)] = time.Now() }
	lately := func(s byte) bool { return time.Since(came[s]) < creditLife }
	answer := byte(0)
	for {
		if _, err := answers.Write([]byte{answer}); err != nil {
			return
		}
		var s byte
		for waiting := true; waiting; {
			select {
			case each := <-signals:
				note(each)
			case question, more := <-asked:
				if !more {
					return
				}
				s, waiting = question%byte(len(came)), false
			}
		}
		for late := time.After(lateness); late != nil && (!lately(s) || len(signals) > 0); {
			select {
			case each := <-signals:
				note(each)
			case <-late:
				late = nil
			}
		}
		answer = 0
		if lately(s) {
			answer = 1
		}
		came[s] = time.Time{}
	}
}

// newWitness starts a witness in the groups that the command will be in: signals to every
// process of weir's own cgroup must not be taken for signals to the process group.
func newWitness(hierarchies *cgroupfs.FS, joined []cgroupfs.Group) (*witness, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"weir", WitnessArg}
	question, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the helper that watches for signals: %w", err)
	}
	answer, answers, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the helper that watches for signals: %w", err)
	}
	cmd.Stdout = answers
	err = start(cmd, hierarchies, joined)
	_ = answers.Close() // the witness has it
	if err != nil {
		_ = answer.Close() // nothing was read
		return nil, fmt.Errorf("start the helper that watches for signals: %w", err)
	}
	w := &witness{cmd: cmd, question: question, answer: answer}
	if _, err := io.ReadFull(answer, make([]byte, 1)); err != nil {
		w.dismiss()
		return nil, fmt.Errorf("start the helper that watches for signals: it ended: %w", err)
	}
	return w, nil
}

// saw reports whether a signal that weir got went to its whole process group. Without a witness
// weir assumes that each signal was for itself.
func (w *witness) saw(s syscall.Signal) bool {
	if w == nil || w.gone {
		return false
	}
	var answer [1]byte
	_, err := w.question.Write([]byte{byte(s)})
	if err == nil {
		err = w.answer.SetReadDeadline(time.Now().Add(answerWait))
	}
	if err == nil {
		_, err = io.ReadFull(w.answer, answer[:])
	}
	w.gone = err != nil // a late answer would be taken for that to the next question
	return answer[0] == 1
}

func (w *witness) dismiss() {
	_ = w.question.Close()
	_ = w.cmd.Process.Kill() // it may be stopped, and not see that
	_ = w.cmd.Wait()         // its status says nothing
	_ = w.answer.Close()
}
