//go:build race

package ledger_test

// raceDetector tells whether this test binary has it.
const raceDetector = true
