package api

import (
	"fmt"
	"strings"
	"time"
)

// The schedule of webhooks in the embedded documents; pages replace it by this installation's.
var documentedDelays = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
	15 * time.Minute}

const documentedTimeout = 10 * time.Second

// schedules are the sentences of the OpenAPI document about the attempts of a webhook.
func schedules(delays []time.Duration, timeout time.Duration) []string {
	en, fr := "Sent to your endpoint once", "Envoyé à votre point de terminaison une fois"
	if len(delays) > 0 {
		en = "Sent to your endpoint at once, and again " + pauses(delays, " and ") + " after a failure"
		fr = "Envoyé aussitôt à votre point de terminaison, puis de nouveau " + pauses(delays, " et ") + " après un échec"
	}
	return []string{en + ". Any 2xx within " + pause(timeout) + " is success", fr + ". Toute réponse 2xx en " +
		pause(timeout) + " au plus vaut succès"}
}

// pauses is a list such as "10 s, 30 s and 5 min".
func pauses(delays []time.Duration, and string) string {
	var b strings.Builder
	for i, d := range delays {
		switch {
		case i > 0 && i == len(delays)-1:
			b.WriteString(and)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(pause(d))
	}
	return b.String()
}

func pause(d time.Duration) string {
	switch {
	case d >= 2*time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}
