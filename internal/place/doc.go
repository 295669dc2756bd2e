// Package place decides what is expected to hold: it resolves what was asked to devices, and says
// for each path of I/O what holds there, and why. The decision is pure and comes as one value. weir
// run, set, show, why and prove all use it, and so do their dry runs, so they agree.
//
// "Expected" is what weir says before any I/O. Only a measurement says "held".
package place
