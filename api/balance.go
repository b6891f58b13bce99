package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// balanceView is what a company has left.
type balanceView struct {
	Credits int64  `json:"credits"`
	Unit    string `json:"unit"`
}

// balance is GET /v1/balance.
func (a *API) balance(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	if !noParameters(c) {
		return
	}
	credits, err := a.ledger.Balance(c.Request.Context(), company.ID)
	if err != nil {
		a.writeUnavailable(c, "reading a balance", err)
		return
	}
	writeJSON(c, http.StatusOK, balanceView{Credits: credits, Unit: "credits"})
}
