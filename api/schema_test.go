package api

import (
	"net/http"
	"testing"
)

func checkAgainstDocument(t testing.TB, req *http.Request, resp *http.Response, body []byte) {}
