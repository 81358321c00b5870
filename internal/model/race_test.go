//go:build race

package model

// shrink divides the bounds of what must find nothing: the race detector makes a search ten times slower, and a search is
// one goroutine.
const shrink = 10
