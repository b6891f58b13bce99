package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// message is the body of every answer that is no success.
type message struct {
	Message string `json:"message"`
}

// refuse refuses a request.
func refuse(c *gin.Context, r *refusal) {
	refusedAs(c, r.code)
	write(c, r.status, message{r.text})
}

// refusedAs ends a request's handling and names the refusal in X-Error-Code.
func refusedAs(c *gin.Context, code string) {
	c.Abort()
	header(c, "X-Error-Code", code)
}

// write answers with a JSON body, its characters as they are.
func write(c *gin.Context, status int, body any) {
	deliver(c, status, encoded(body))
}

// encoded is a JSON text, its characters as they are.
func encoded(body any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic("api: an answer does not marshal: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}

// largeAnswer is above what an answer, in octets, counts as memory until the
// client has read it; smaller ones go into the system's buffers at once.
const largeAnswer = 64 << 10

// deliver writes a JSON text. A large one of a client that does not read gives
// way when others need the memory: its connection ends then.
func deliver(c *gin.Context, status int, text []byte) {
	if leave, known := c.Get(leaveKey); known {
		leave.(func())()
	}
	if shared, known := c.Get(memoryKey); known && len(text) > largeAnswer {
		control := http.NewResponseController(c.Writer)
		held := shared.(*memory).open(caller(c).UserID, "answer", func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
		defer held.close()
		if err := held.resize(c.Request.Context(), int64(len(text))); err != nil {
			tryAfter(c, 5*time.Second)
			refusedAs(c, unavailable.code)
			status, text = unavailable.status, encoded(message{unavailable.text})
		}
	}
	c.Data(status, "application/json", text)
}

// header sets a header whose name is written as it stands here; names are
// equal in any case, but people read them.
func header(c *gin.Context, name, text string) {
	c.Writer.Header()[name] = []string{text}
}

// tryAfter says when a refused request may come again: in whole seconds,
// rounded up, so that whoever keeps to it is not refused once more.
func tryAfter(c *gin.Context, wait time.Duration) {
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// away answers for a database that is away, or a process with its hands
// full: nothing was charged.
func (a *API) away(c *gin.Context, doing string, err error) {
	// One line a second: every request fails alike while the database is away.
	now := time.Now().Unix()
	if c.Request.Context().Err() == nil && a.awayLogged.Swap(now) != now {
		a.log(c).Error("request failed: "+doing, "path", c.FullPath(), "error", err)
	}
	tryAfter(c, 5*time.Second)
	refuse(c, unavailable)
}

// fail answers for a fault of ours; the details stay in the log.
func (a *API) fail(c *gin.Context, doing string, err error) {
	a.log(c).Error("request failed: "+doing, "path", c.FullPath(), "error", err)
	refuse(c, serverError)
}

// timestamp writes a time as ISO 8601 with offset, as webhooks do.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-07:00") }

// optional is timestamp of what may not have happened: nil is null.
func optional(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := timestamp(*t)
	return &text
}

// orNull is a text that is null when there is none.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
