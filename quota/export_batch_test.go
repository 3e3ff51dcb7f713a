package quota

// BatchCalls recognises the calls of a batch.
var BatchCalls = batchCalls
