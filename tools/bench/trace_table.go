package main

import (
	"errors"
	"fmt"
)

// printTraces prints a table and returns an error for each bound that is not kept.
func printTraces(plain []overhead, sums [][]overhead, refused []error) error {
	fmt.Printf("\n%-26s", "buffered writes to ext4")
	for _, k := range loadKinds {
		fmt.Printf("  %-26s", k.name)
	}
	fmt.Printf("\n%-26s", "no tracer")
	for _, o := range plain {
		fmt.Printf("  %8.0f ns (CPU %5.0f)     ", median(o.elapsed), median(o.cpu))
	}
	fmt.Println()
	var missed []error
	for i, t := range traceds {
		fmt.Printf("%-26s", t.name)
		if refused[i] != nil {
			fmt.Printf("  cannot run here: %v\n", refused[i])
			continue
		}
		for k, o := range sums[i] {
			more := median(o.ratios) - 1
			bound := ""
			if t.bound != nil {
				most := t.bound(loadKinds[k])
				bound = fmt.Sprintf(" ≤%.0f", 100*most)
				if more > most {
					missed = append(missed, fmt.Errorf("%s, %s: a write takes %.1f %% more, not at most %.0f", t.name, loadKinds[k].name, 100*more, 100*most))
				}
			}
			fmt.Printf("  %8.0f ns %-17s", median(o.elapsed), fmt.Sprintf("%+.1f%%%s (%+.1f%%)", 100*more, bound, 100*(median(o.cpuRatios)-1)))
		}
		fmt.Println()
	}
	fmt.Println("medians of", len(sums[0][0].ratios), "rounds, of the ratios to the run before without a tracer; in brackets CPU time")
	return errors.Join(missed...)
}
