package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// pages are the documents that describe the API.
type pages struct{}

func newPages(testSender string) (*pages, error) { return &pages{}, nil }

func (p *pages) openAPI(c *gin.Context) { c.Status(http.StatusOK) }
func (p *pages) docs(c *gin.Context)    { c.Status(http.StatusOK) }
func (p *pages) asset(c *gin.Context)   { c.Status(http.StatusOK) }
