package main

import "github.com/dustin/go-humanize"

// counted is a number of things: "1 problem", "1,200 problems".
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Comma(n) + " " + noun
}
