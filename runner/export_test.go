package runner

// AtOnce is how many sessions a sweep recovers at once.
const AtOnce = atOnce
