package plot

import "math"

// A frame takes values to places on the panel.
type frame struct {
	x0, x1, bottom, top float64
	log                 bool
	above, height       float64
}

func (f frame) x(v float64) float64 {
	return left + (v-f.x0)/(f.x1-f.x0)*(width-left-right)
}

func (f frame) y(v float64) float64 {
	return f.height - below - f.part(v)*(f.height-f.above-below)
}

// part is how far up a value is, from 0 to 1.
func (f frame) part(v float64) float64 {
	v = min(max(v, f.bottom), f.top)
	if f.log {
		return math.Log(v/f.bottom) / math.Log(f.top/f.bottom)
	}
	return (v - f.bottom) / (f.top - f.bottom)
}

// frame chooses the axes, and finds each line's highest value.
func (c Chart) frame() (f frame, highest []float64) {
	f = frame{x0: math.Inf(1), x1: math.Inf(-1), above: above, height: panel}
	top, lowest := c.Level, math.Inf(1)
	sums := map[float64]float64{} // of areas, by X
	for _, l := range c.Lines {
		most := 0.0
		for _, p := range l.Points {
			f.x0, f.x1, most = min(f.x0, p.X), max(f.x1, p.X), max(most, p.Y)
			if p.Y > 0 {
				lowest = min(lowest, p.Y)
			}
			sums[p.X] += p.Y
		}
		highest, top = append(highest, most), max(top, most)
	}
	if c.Stacked || c.XTo > 0 {
		f.x0, f.x1 = min(f.x0, 0), max(f.x1, c.XTo)
	}
	if c.Stacked {
		for _, sum := range sums {
			top = max(top, sum)
		}
	}
	if c.Level > 0 && !c.Log {
		top = min(top, headroom*c.Level)
	}
	if !(f.x1 > f.x0) { // nothing to show, or one moment
		f.x0, f.x1 = 0, 1
	}
	switch {
	case c.YTo > 0:
		f.top = c.YTo
	case top <= 0:
		f.top = 1
	case c.Log:
		f.log = true
		f.bottom, f.top = decades(min(lowest, top), top)
	default:
		f.top = top * 1.08
	}
	return f, highest
}

// decades are a log axis's ends: a round value at or below the lowest, and a little above
// the highest.
func decades(lowest, highest float64) (bottom, top float64) {
	bottom = math.Pow(10, math.Floor(math.Log10(lowest)))
	for _, m := range []float64{5, 2} {
		if bottom*m <= lowest {
			bottom *= m
			break
		}
	}
	return bottom, max(highest*1.2, bottom*2)
}

// ticks are the values that are written beside Y.
func (f frame) ticks() []float64 {
	if !f.log {
		return ticks(f.bottom, f.top, 4)
	}
	steps := []float64{1}
	if math.Log10(f.top/f.bottom) < 2.5 {
		steps = []float64{1, 2, 5}
	}
	var at []float64
	for exponent := math.Floor(math.Log10(f.bottom)); ; exponent++ {
		for _, m := range steps {
			v := m * math.Pow(10, exponent)
			if v > f.top {
				return at
			}
			if v >= f.bottom*(1-1e-9) {
				at = append(at, v)
			}
		}
	}
}

// ticks returns about n round values between low and high.
func ticks(low, high float64, n int) []float64 {
	raw := (high - low) / float64(n)
	if raw <= 0 || math.IsInf(raw, 0) || math.IsNaN(raw) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if step*m >= raw {
			step *= m
			break
		}
	}
	var at []float64
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		at = append(at, i*step)
	}
	return at
}
