package api

import (
	"github.com/gin-gonic/gin"
)

// balanceView is a company's balance.
type balanceView struct {
	Credits int64  `json:"credits"`
	Unit    string `json:"unit"`
}

// balance is GET /v1/balance.
func (a *API) balance(c *gin.Context) (balanceView, error) {
	credits, err := a.Ledger.Balance(c.Request.Context(), caller(c).Company.ID)
	return balanceView{Credits: credits, Unit: "credits"}, err
}
