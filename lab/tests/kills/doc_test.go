// Package kills_test kills weir with SIGKILL at random moments and looks at what is
// left after the next weir command: no group, no limit half set, no mount, no loop
// device, no load. WEIR_KILLS sets how many times each verb is killed.
package kills_test
