// Package chart makes charts of what weir has measured. Package svg draws them into files, and
// package text prints some of them as characters.
package chart
