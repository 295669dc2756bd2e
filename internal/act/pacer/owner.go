package pacer

import "time"

// An owner can have the processes of a group paused as well: docker pause, systemctl freeze. Such
// processes are not idle. They would write on as fast as they can when that pause ends, and nobody looks
// often at who has written nothing for long. So the pacer keeps them paused too until the owner resumes
// them, and then looks at them as at newcomers. What they owe is paid meanwhile.

const (
	// joinAfter is how long they have written nothing when the pacer looks for their owner's pause.
	joinAfter = time.Millisecond
	// joinEvery is how often it does so, which is one read of a file.
	joinEvery = 20 * time.Millisecond
)

// joins reports whether the owner has paused processes that have written nothing for a while.
func (p *paced) joins(now time.Duration) bool {
	if p.speed > 0 || now-p.quiet <= joinAfter || now-p.asked < joinEvery || p.rests(now) > 0 {
		return false
	}
	p.asked = now
	return p.cells.frozenAbove()
}

// join pauses them too.
func (p *paced) join(now time.Duration, may pace) error {
	if err := p.set(true); err != nil {
		return err
	}
	p.looked, p.settled, p.joined = true, true, true
	_, err := p.stays(now, may)
	return err
}

// stays reports whether they are paused for their owner, who has them so still, and plans when to ask again.
func (p *paced) stays(now time.Duration, may pace) (bool, error) {
	if !p.stopped || !p.joined {
		return false, nil
	}
	if err := p.bring(now); err != nil { // the group may have gone, or got others
		return false, err
	}
	p.plan(now + min(may.lull*time.Duration(len(p.cells.all)), gatherEvery))
	return p.cells.frozenAbove(), nil
}

// resumed takes in a pause that has ended just now. Those whom their owner has resumed are as if they had
// just come.
func (p *paced) resumed(now time.Duration) {
	p.let = now
	if p.joined {
		p.joined, p.trust = false, runLeast/2
		p.quiet, p.came, p.fresh = now, now, now
		return
	}
	p.paused += now - p.halted
	p.quiet += now - p.halted // they could not write
}

// frozenAbove reports whether all processes in cells are paused by others than the pacer.
func (c *cells) frozenAbove() bool {
	for _, each := range c.all {
		if is, err := each.own.FrozenAbove(); err != nil || !is {
			return false
		}
	}
	return len(c.all) > 0
}
