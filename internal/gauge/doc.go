// Package gauge writes for people how full the quota is, who waits for it, and what was
// decided about it. It decides nothing and asks nobody.
package gauge
