// Package web is what all pages of the dashboard have in common: requests, sessions, forms, lists, files and templates.
// It knows nothing of messages.
package web
