// Package wire is how requests and answers of Google's APIs look: the envelope of
// errors with the forms of its refusals, field masks, compression, and bodies that
// are made while they are sent. It knows no API and no limit.
package wire
