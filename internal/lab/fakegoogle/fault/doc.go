// Package fault breaks answers on demand: a [Fault] says which calls it concerns and
// what they get instead of the true answer, and a [Quirk] how the true answer
// differs from Google's usual ones without being an error.
package fault
