package pacer

import "time"

// settle looks at processes that are paused by now, and plans how long they stay so. later reports
// that they do.
func (p *paced) settle(now time.Duration, may pace) (later bool, err error) {
	if err := p.look(now); err != nil {
		return false, err
	}
	p.looked = true
	if !p.tell(now) {
		return true, p.wait(now)
	}
	p.settled = true
	cycle := min(may.cycle, p.bucket.depth/2)
	if p.bucket.level < p.bucket.rate*cycle.Seconds()/2 { // what is left is for the next time
		p.plan(max(now+p.bucket.until(0), p.let+cycle))
		p.heed(now)
		return true, nil
	}
	return false, p.set(false) // they were stopped much too early
}

// wait leaves paused processes so until a loan, or a doubt, is over. They take their signals
// meanwhile.
func (p *paced) wait(now time.Duration) error {
	if !p.looked {
		if err := p.look(now); err != nil {
			return err
		}
		p.looked = true
	}
	p.plan(p.waits)
	p.heed(now)
	return nil
}

// heed has paused processes checked for signals, unless they go on so soon that they take them then.
func (p *paced) heed(now time.Duration) {
	if p.next-now > shortMost {
		p.due = min(p.next, max(now, p.courtesy.due))
	}
}
