package api

import (
	_ "embed"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// openAPIText describes every endpoint and webhook. The tests hold every
// answer to it.
//
//go:embed openapi.json
var openAPIText string

// usualTestSender is the test sender's name in the documents, which show the
// installation's own instead.
const usualTestSender = "INTUMWATEST"

// pages are the documents that describe the API, ready to be sent.
type pages struct {
	openAPIDocument []byte
}

func newPages(testSender string) (*pages, error) {
	return &pages{openAPIDocument: []byte(strings.ReplaceAll(openAPIText, usualTestSender, testSender))}, nil
}

// openAPI is GET /v1/openapi.json. Other sites' tools may read it.
func (p *pages) openAPI(c *gin.Context) {
	c.Header("Access-Control-Allow-Origin", "*")
	c.Header("Cache-Control", "public, max-age=300")
	c.Data(http.StatusOK, "application/json", p.openAPIDocument)
}

func (p *pages) docs(c *gin.Context)  { c.Status(http.StatusOK) }
func (p *pages) asset(c *gin.Context) { c.Status(http.StatusOK) }
