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
	credits, err := a.Ledger.Balance(c.Request.Context(), caller(c).Company.ID)
	if err != nil {
		a.writeLookupError(c, "reading a balance", err)
		return
	}
	writeJSON(c, http.StatusOK, balanceView{Credits: credits, Unit: "credits"})
}
