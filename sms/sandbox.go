package sms

import "time"

// SandboxCarrier is the carrier of sandbox messages. No configured carrier can have this name.
const SandboxCarrier = "(sandbox)"

// SandboxFate is the outcome of messages to a sandbox number: rule choices 6.5.
type SandboxFate struct {
	Number Number
	Status Status        // Sent or Failed
	Reason string        // of a failure, as a carrier would write it
	After  time.Duration // after the message was accepted
}

// sandbox has the sandbox numbers. No number of Burundi begins with 0: they belong to no subscriber.
var sandbox = [...]SandboxFate{
	{Number: "+25701000001", Status: Sent, After: time.Second},
	{Number: "+25701000002", Status: Failed, Reason: "UNDELIV 001", After: time.Second},
	{Number: "+25701000003", Status: Failed, Reason: "ESME_RINVDSTADR", After: 0},
	{Number: "+25701000004", Status: Sent, After: 30 * time.Second},
	{Number: "+25701000005", Status: Failed, Reason: "EXPIRED 000", After: 30 * time.Second},
}

// SandboxFates returns the sandbox numbers with their fates.
func SandboxFates() []SandboxFate { return sandbox[:] }

// SandboxFateOf returns a sandbox number's fate; ok is false for any other number.
func SandboxFateOf(n Number) (fate SandboxFate, ok bool) {
	for _, fate := range sandbox {
		if fate.Number == n {
			return fate, true
		}
	}
	return SandboxFate{}, false
}

// ParseSandbox parses a sandbox number in any form that Plan.Parse accepts.
func ParseSandbox(s string) (Number, bool) {
	var d digits
	if !d.read(s) {
		return "", false
	}
	national, ok := d.national()
	if !ok {
		return "", false
	}
	n := Number("+" + countryCode + string(national))
	_, ok = SandboxFateOf(n)
	return n, ok
}
