// Package layers holds the packages to the directions in which they may import
// each other; the rules are in its test.
package layers
