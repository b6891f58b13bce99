package intake

import (
	"strconv"
	"strings"

	"intumwa/sms"
)

// Refusals without substituted values (rule api 7.2; rule choices 1.7, 2.3, 6.2). The API's reference lists all
// refusals of this file.
var (
	RefuseNoCompany   = sms.Refusal{Reason: "no_company", Text: "You must create a company before sending messages."}
	RefuseNotApproved = sms.Refusal{Reason: "company_not_approved",
		Text: "Your company must be approved before sending messages."}
	RefuseNotVerified = sms.Refusal{Reason: "company_not_verified",
		Text: "Your company must be verified before sending messages."}
	RefuseSenderUnknown = sms.Refusal{Reason: "sender_not_found", Text: "Sender not found."}
	RefuseSenderUnready = sms.Refusal{Reason: "sender_not_approved",
		Text: "The sender must be approved before sending messages."}
	RefuseOptedOut = sms.Refusal{Reason: "opted_out",
		Text: "The recipient has opted out of messages from this sender."}
	RefuseNoCarrier    = sms.Refusal{Reason: "no_carrier", Text: "No carrier serves this phone number."}
	RefuseUnregistered = sms.Refusal{Reason: "sender_not_registered", Text: "Sender not registered with this carrier."}
	RefuseTooLong      = sms.Refusal{Reason: "too_long", Text: "The message is too long."}
	RefuseNoTestNumber = sms.Refusal{Reason: "no_test_number",
		Text: "Verify a test number before sending test messages."}
	RefuseOtherTestNumber = sms.Refusal{Reason: "other_test_number",
		Text: "Test messages can only be sent to your verified test number."}
	RefuseTestQuota = sms.Refusal{Reason: "test_quota", Text: "Test quota exceeded."}
	RefuseQuiet     = sms.Refusal{Reason: "quiet_hours",
		Text: "The messages would expire before the quiet hours end."}
	RefuseSandboxQuota = sms.Refusal{Reason: "sandbox_quota", Text: "Sandbox quota exceeded."}
)

// RefuseTestSender refuses the test sender in a batch.
func RefuseTestSender(name string) sms.Refusal {
	return sms.Refusal{Reason: "test_sender",
		Text: "Bulk send does not support the test sender (" + name + "); use the single-message endpoint for test traffic."}
}

// RefuseCountry refuses a number whose country differs from the sender's, and names both.
func RefuseCountry(phone, telco string) sms.Refusal {
	return sms.Refusal{Reason: "country",
		Text: "The phone number country (" + phone + ") does not match the sender ID's telco country (" + telco + ")."}
}

// Refusals of one recipient of a batch, named by position.

// RefuseRecipientsOptedOut is RefuseOptedOut for a batch. It names all of them, or the first fifty and the number of
// the others.
func RefuseRecipientsOptedOut(ordinals ...string) sms.Refusal {
	who, have := "Recipient #"+ordinals[0], "has"
	if n := len(ordinals); n > 1 {
		named, last := ordinals[:n-1], " and #"+ordinals[n-1]
		if n > optOutsNamed {
			named, last = ordinals[:optOutsNamed], " and "+strconv.Itoa(n-optOutsNamed)+" more"
		}
		who, have = "Recipients #"+strings.Join(named, ", #")+last, "have"
	}
	return sms.Refusal{Reason: "opted_out", Text: who + " " + have + " opted out of messages from this sender."}
}

const optOutsNamed = 50

// RefuseRecipientCarrier is RefuseNoCarrier for a batch.
func RefuseRecipientCarrier(ordinal string) sms.Refusal {
	return sms.Refusal{Reason: "no_carrier", Text: "Recipient #" + ordinal + ": no carrier serves this phone number."}
}

// RefuseRecipientUnregistered is RefuseUnregistered for a batch.
func RefuseRecipientUnregistered(ordinal string) sms.Refusal {
	return sms.Refusal{Reason: RefuseUnregistered.Reason, Text: ofRecipient(ordinal, RefuseUnregistered.Text)}
}

// RefuseRecipientEmpty refuses a text that is empty after rendering.
func RefuseRecipientEmpty(ordinal string) sms.Refusal {
	return sms.Refusal{Reason: "empty", Text: "Recipient #" + ordinal + "'s message is empty."}
}

// RefuseRecipientLong is RefuseTooLong for a batch.
func RefuseRecipientLong(ordinal string) sms.Refusal {
	return sms.Refusal{Reason: "too_long", Text: "Recipient #" + ordinal + "'s message is too long."}
}

// RefuseVariables names the variables of the template that a recipient lacks.
func RefuseVariables(ordinal string, missing []string) sms.Refusal {
	return sms.Refusal{Reason: "missing_variables",
		Text: "Recipient #" + ordinal + " is missing required template variables: " + strings.Join(missing, ", ") + "."}
}

// RefuseContact names the variables of the template that a member of a group lacks.
func RefuseContact(id int64, missing []string) sms.Refusal {
	return sms.Refusal{Reason: "missing_variables",
		Text: "Contact #" + strconv.FormatInt(id, 10) + " is missing required template variables: " +
			strings.Join(missing, ", ") + "."}
}

// ordinal returns a recipient's position, from 1.
func ordinal(index int) string { return strconv.Itoa(index + 1) }

// RefuseCredits is the refusal of rule api 7.2 (batch) and rule choices 1.7 (message), with :credits and :unit.
func RefuseCredits(what, credits string) sms.Refusal {
	return sms.Refusal{Reason: "insufficient_credits",
		Text: "Insufficient SMS credits. This " + what + " requires " + credits + " " + unitOf(credits) + "."}
}

// unitOf returns the :unit of a number of credits.
func unitOf(credits string) string {
	if credits == "1" {
		return "credit"
	}
	return "credits"
}

// Refusals by limits (rule choices 4.7). The recipient is a position in a batch, or empty.

// RefuseTooSoon refuses a text that went to the number within the interval.
func RefuseTooSoon(recipient, interval string) sms.Refusal {
	return sms.Refusal{Reason: "repeated_too_soon",
		Text: ofRecipient(recipient, "The same message can be sent to this phone number only once in "+interval+".")}
}

// RefuseRepeats refuses a text that went to the number as often as allowed on a day.
func RefuseRepeats(recipient, most string) sms.Refusal {
	often := "at most " + most + " times"
	if most == "1" {
		often = "only once"
	}
	return sms.Refusal{Reason: "repeated_too_often",
		Text: ofRecipient(recipient, "The same message can be sent to this phone number "+often+" a day.")}
}

// RefuseNumber refuses a number that got as many messages as allowed on a day.
func RefuseNumber(recipient, most string) sms.Refusal {
	messages := " messages"
	if most == "1" {
		messages = " message"
	}
	return sms.Refusal{Reason: "number_limit", Text: ofRecipient(recipient, "At most "+most+messages+
		" a day can be sent to this phone number.")}
}

// RefuseDailyCap refuses a request (message, batch) that would exceed the company's credits for a day.
func RefuseDailyCap(what, credits, left, most string) sms.Refusal {
	return sms.Refusal{Reason: "daily_cap",
		Text: "Daily spending limit exceeded. This " + what + " requires " + credits + " " + unitOf(credits) + "; " + left +
			" of " + most + " are left today."}
}

// ofRecipient prefixes a text with the recipient of a batch.
func ofRecipient(recipient, text string) string {
	if recipient == "" {
		return text
	}
	return "Recipient #" + recipient + ": " + string(text[0]|0x20) + text[1:]
}
