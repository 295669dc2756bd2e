// Package place decides: it takes what was asked to devices, and says for each path of I/O
// what is expected to hold there, and why. The decision is pure and comes as one value, which
// weir run, set, show, why and prove all take, and their dry runs too: so they agree.
//
// Expected is what is said before any I/O. Only a measurement says held.
package place
