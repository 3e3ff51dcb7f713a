package api

// Described is for tests: the types that others stand for in the document.
var Described = described
