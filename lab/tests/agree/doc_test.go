// Package agree_test holds weir why against weir prove: what the one says of a place
// without a load, the other measures there, and they must not differ.
package agree_test
