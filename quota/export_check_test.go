package quota

// CheckAt is [Check] by another local clock.
var CheckAt = checkAt
