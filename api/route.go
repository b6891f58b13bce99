package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// route is one endpoint.
type route struct {
	method, path string
	handlers     []gin.HandlerFunc
}

// table lists the endpoints. A test compares it with the OpenAPI document.
func (a *API) table() []route {
	page := newPages(a.opts, a.Throttle.Limit())
	send := func(path string, handler gin.HandlerFunc) route {
		return route{http.MethodPost, path, []gin.HandlerFunc{a.authenticate, a.limitRate, handler}}
	}
	change := func(method, path string, handler gin.HandlerFunc) route { // with a body, or one that waits
		return route{method, path, []gin.HandlerFunc{a.authenticate, a.needCompany, handler}}
	}
	look := func(method, path string, handlers ...gin.HandlerFunc) route {
		return route{method, path, append([]gin.HandlerFunc{a.authenticate, a.needCompany, a.lookup}, handlers...)}
	}
	open := func(path string, handler gin.HandlerFunc) route {
		return route{http.MethodGet, path, []gin.HandlerFunc{handler}}
	}
	return []route{
		send("/v1/sms", a.sendSingle),
		send("/v1/sms/bulk", a.sendBatch(a.readBulk)),
		send("/v1/sms/template", a.sendBatch(a.readTemplate)),
		change(http.MethodPost, "/v1/sms/preview", a.preview),
		look(http.MethodGet, "/v1/sms", respond(a, a.listMessages)),
		look(http.MethodGet, "/v1/sms/:id", a.noParameters, respond(a, a.getMessage)),
		look(http.MethodDelete, "/v1/sms/:id", a.noParameters, respond(a, a.cancelMessage)),
		look(http.MethodGet, "/v1/sms/batches/:id", a.noParameters, respond(a, a.getBatch)),
		look(http.MethodDelete, "/v1/sms/batches/:id", a.noParameters, respond(a, a.cancelBatch)),
		look(http.MethodDelete, "/v1/batches/:id", a.noParameters, respond(a, a.cancelBatch)),
		look(http.MethodGet, "/v1/batches/:id/messages", respond(a, a.listBatchMessages)),
		send("/v1/verifications", a.createVerification),
		look(http.MethodGet, "/v1/verifications/:id", a.noParameters, respond(a, a.getVerification)),
		change(http.MethodPost, "/v1/verifications/:id/check", a.checkVerification),
		look(http.MethodPost, "/v1/verifications/:id/cancel", respond(a, a.cancelVerification)),
		change(http.MethodPost, "/v1/sms/:id/feedback", a.sendFeedback),
		look(http.MethodGet, "/v1/balance", a.noParameters, respond(a, a.balance)),
		look(http.MethodGet, "/v1/usage", respond(a, a.usage)),
		look(http.MethodGet, "/v1/test-number", a.noParameters, respond(a, a.getTestNumber)),
		change(http.MethodPut, "/v1/test-number", a.putTestNumber),
		change(http.MethodPost, "/v1/test-number/verify", a.verifyTestNumber),
		look(http.MethodGet, "/v1/webhook-deliveries", respond(a, a.listDeliveries)),
		look(http.MethodGet, "/v1/webhook-deliveries/:id", a.noParameters, respond(a, a.getDelivery)),
		look(http.MethodPost, "/v1/webhook-deliveries/:id/resend", respond(a, a.resendDelivery)),
		change(http.MethodGet, "/v1/events", a.listEvents), // it takes a slot of a look-up only while it reads
		look(http.MethodGet, "/v1/inbound", respond(a, a.listInbound)),
		look(http.MethodGet, "/v1/inbound/:id", a.noParameters, respond(a, a.getInbound)),
		look(http.MethodGet, "/v1/opt-outs", respond(a, a.listOptOuts)),
		{http.MethodPost, "/v1/opt-outs", []gin.HandlerFunc{a.authenticate, a.addOptOuts}},
		look(http.MethodDelete, "/v1/opt-outs/:id", respond(a, a.removeOptOut)),
		look(http.MethodGet, "/v1/contacts", respond(a, a.listContacts)),
		change(http.MethodPost, "/v1/contacts", a.createContact),
		change(http.MethodPost, "/v1/contacts/bulk", a.putContacts),
		look(http.MethodGet, "/v1/contacts/:id", a.noParameters, respond(a, a.getContact)),
		change(http.MethodPatch, "/v1/contacts/:id", a.changeContact),
		look(http.MethodDelete, "/v1/contacts/:id", a.noParameters, respond(a, a.deleteContact)),
		look(http.MethodGet, "/v1/groups", respond(a, a.listGroups)),
		change(http.MethodPost, "/v1/groups", a.createGroup),
		look(http.MethodGet, "/v1/groups/:id", a.noParameters, respond(a, a.getGroup)),
		change(http.MethodPatch, "/v1/groups/:id", a.changeGroup),
		look(http.MethodDelete, "/v1/groups/:id", a.noParameters, respond(a, a.deleteGroup)),
		open("/v1/openapi.json", page.openAPI),
		open("/docs", page.docs),
		open("/docs/:asset", page.asset),
	}
}

func (a *API) routes() (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.RedirectTrailingSlash = false
	r.RemoteIPHeaders = []string{"X-Forwarded-For"} // a proxy may pass a client's X-Real-IP on
	if err := r.SetTrustedProxies(a.opts.TrustedProxies); err != nil {
		return nil, fmt.Errorf("setting the trusted proxies: %w", err)
	}
	r.Use(a.identify, a.observe, a.recover)
	methods := map[string][]string{}
	for _, e := range a.table() {
		for _, method := range withHead(e.method) {
			r.Handle(method, e.path, e.handlers...)
			methods[e.path] = append(methods[e.path], method)
		}
	}
	// GET /v1/sms/bulk is a wrong method, not a message called bulk.
	for path := range methods {
		if name, ok := strings.CutPrefix(path, "/v1/sms/"); ok && !strings.Contains(name, "/") && name != ":id" {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
				if !slices.Contains(methods[path], method) {
					r.Handle(method, path, func(c *gin.Context) { writeMethodNotAllowed(c, methods[path]) })
				}
			}
		}
	}
	r.NoRoute(func(c *gin.Context) {
		if allowed := allowedOn(methods, c.Request.URL.Path); allowed != nil {
			writeMethodNotAllowed(c, allowed)
			return
		}
		writeRefusal(c, notFound)
	})
	return r, nil
}

// withHead adds HEAD to GET (RFC 9110, 9.3.2). The server leaves the body out.
func withHead(method string) []string {
	if method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{method}
}

func writeMethodNotAllowed(c *gin.Context, allowed []string) {
	c.Header("Allow", strings.Join(allowed, ", "))
	writeRefusal(c, wrongMethod)
}

// allowedOn returns the methods of a path; nil when there is no such path.
func allowedOn(methods map[string][]string, path string) []string {
	if allowed := methods[path]; allowed != nil {
		return allowed
	}
	if cut := strings.LastIndexByte(path, '/'); cut >= 0 && cut < len(path)-1 {
		for _, name := range []string{":id", ":asset"} {
			if allowed := methods[path[:cut+1]+name]; allowed != nil {
				return allowed
			}
		}
		if above := strings.LastIndexByte(path[:cut], '/'); above >= 0 && above < cut-1 {
			return methods[path[:above]+"/:id"+path[cut:]]
		}
	}
	return nil
}
