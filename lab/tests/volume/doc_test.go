// Package volume_test measures weir's volumes, and kills weir while it changes them.
package volume_test
