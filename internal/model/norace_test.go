//go:build !race

package model

const shrink = 1
