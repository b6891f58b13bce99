// Package sms holds the words of the trade and the arithmetic that belongs to
// them: phone numbers, character encodings, segments, templates, statuses and
// refusals. It does no I/O and imports nothing outside the standard library.
//
// SplitEncoded is the only place in the product that cuts a text into segments,
// and Count is the only one that counts them: what a customer is charged, what
// a preview shows and what a carrier receives come from the same rules, so they
// cannot disagree.
package sms
