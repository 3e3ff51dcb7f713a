// Package e2e holds the acceptance tests of whole processes: an installation of
// a fake Google, a redis-server, a store and settings of its own, on which one
// or more processes run, are killed, starved and misled. It has no code but
// tests; tests of a single package stand beside that package.
package e2e
