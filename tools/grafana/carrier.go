package grafana

// carrier is everything about one carrier and its links.
func carrier() Dashboard {
	const at = `carrier=~"$carrier", link=~"$link"`
	const of = `carrier=~"$carrier"`
	return page("carrier", "carrier", "One carrier in detail: sessions, traffic, answers, receipts, queue.", "3h",
		[]Variable{choice("carrier", "Carrier", "label_values(intumwa_smpp_sessions_configured, carrier)"),
			choice("link", "Link", `label_values(intumwa_smpp_sessions_configured{carrier=~"$carrier"}, link)`)},

		number(panel{title: "Sessions bound", width: 4, queries: []query{{expr: `sum(intumwa_smpp_sessions_bound{` + at + `}) / sum(intumwa_smpp_sessions_configured{` + at + `})`}},
			unit: "percentunit", thresholds: ptr(steps(now, step{0.01, soon}, step{1, calm}))}),
		number(panel{title: "Bound for", width: 4, unit: "s", decimals: ptr(0), queries: []query{{expr: `time() - max(intumwa_smpp_session_start_timestamp_seconds{` + at + `})`}}}),
		number(panel{title: "Last PDU ago", width: 4, unit: "s", decimals: ptr(0), queries: []query{{expr: `time() - max(intumwa_smpp_last_pdu_timestamp_seconds{` + at + `})`}},
			thresholds: ptr(steps(calm, step{45, soon}, step{90, now}))}),
		number(panel{title: "Receipts of the last hour", width: 4, unit: "percentunit", decimals: ptr(0), queries: []query{{expr: `min(carrier:intumwa_receipts:ratio1h{` + of + `})`}},
			thresholds: ptr(steps(now, step{0.3, soon}, step{0.6, calm}))}),
		number(panel{title: "Failed of 15 minutes", width: 4, unit: "percentunit", decimals: ptr(1), queries: []query{{expr: `max(carrier:intumwa_failed:ratio15m{` + of + `})`}},
			thresholds: ptr(steps(calm, step{0.1, soon}, step{0.2, now}))}),
		number(panel{title: "Sent twice, perhaps", about: "Segments sent again within a day because their answer was lost.", width: 4, decimals: ptr(0),
			queries: []query{{expr: `sum(increase(intumwa_segments_resent_total{` + of + `}[1d])) or vector(0)`}}, thresholds: ptr(steps(calm, step{1, soon}))}),

		graph(panel{title: "State of the links", about: "3 bound, 2 paused, 1 connecting, 0 down, 4 bound but dead, -1 gone.",
			queries: []query{{`carrier_link:intumwa_state:code{` + at + `}`, "{{link}}"}}}),
		graph(panel{title: "Segments a second, and the limit", queries: []query{
			{`carrier_link:intumwa_segments:rate1m{` + at + `}`, "{{link}}"},
			{`max by (link) (intumwa_smpp_pace_limit_per_second{` + at + `}) > 0`, "limit {{link}}"}}}),
		graph(panel{title: "Window in use", queries: []query{
			{`max by (link) (intumwa_smpp_window_in_flight{` + at + `})`, "{{link}}"},
			{`max by (link) (intumwa_smpp_window_size{` + at + `})`, "size {{link}}"},
			{`max by (link) (intumwa_smpp_window_waiting{` + at + `})`, "waiting {{link}}"}}}),
		graph(panel{title: "Time to an answer", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (link, le) (rate(intumwa_smpp_submit_duration_seconds_bucket{` + at + `}[5m])))`, "p50 {{link}}"},
			{`carrier_link:intumwa_submit_seconds:p95_5m{` + at + `}`, "p95 {{link}}"},
			{`histogram_quantile(0.5, sum by (link, le) (rate(intumwa_smpp_enquire_link_duration_seconds_bucket{` + at + `}[15m])))`, "enquire_link {{link}}"}}}),
		graph(panel{title: "Answers by result", unit: "ops", stack: true, queries: []query{
			{`sum by (result) (rate(intumwa_smpp_submit_results_total{` + at + `}[$__rate_interval]))`, "{{result}}"}}}),
		graph(panel{title: "Refusals by command_status", unit: "ops", stack: true, queries: []query{
			{`sum by (status) (rate(intumwa_smpp_pdus_total{` + at + `, direction="in", command="submit_sm_resp", status!="ESME_ROK"}[$__rate_interval])) or vector(0)`, "{{status}}"}}}),
		graph(panel{title: "Throttled", unit: "percentunit", queries: []query{{`carrier_link:intumwa_throttled:ratio1m{` + at + `}`, "{{link}}"}},
			thresholds: ptr(steps(calm, step{0.05, soon}, step{0.25, now})), lines: true}),
		graph(panel{title: "Ended sessions and refused binds, in 15 minutes", queries: []query{
			{`sum by (link, reason) (increase(intumwa_smpp_session_closed_total{` + at + `}[15m])) or vector(0)`, "{{link}} {{reason}}"},
			{`sum by (link, result, status) (increase(intumwa_smpp_bind_attempts_total{` + at + `, result!="ok"}[15m])) or vector(0)`, "bind {{link}} {{result}} {{status}}"}}}),
		graph(panel{title: "Receipts by what became of them", unit: "ops", stack: true, queries: []query{
			{`sum by (outcome) (rate(intumwa_receipts_total{` + at + `}[$__rate_interval]))`, "{{outcome}}"}}}),
		graph(panel{title: "Receipts: unmatched, refused, matched late", unit: "ops", queries: []query{
			{`carrier:intumwa_unmatched_receipts:ratio2m{` + of + `}`, "unmatched share {{carrier}}"},
			{`sum by (carrier) (rate(intumwa_receipts_refused_total{` + of + `}[$__rate_interval])) or vector(0)`, "put back {{carrier}}"},
			{`sum by (carrier) (rate(intumwa_receipts_matched_late_total{` + of + `}[$__rate_interval]))`, "matched late {{carrier}}"}}}),
		graph(panel{title: "Messages that ended, by reason", unit: "ops", stack: true, queries: []query{
			{`sum by (status, reason_class) (rate(intumwa_messages_final_total{` + of + `}[$__rate_interval]))`, "{{status}} {{reason_class}}"}}}),
		graph(panel{title: "From acceptance to sent or failed", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (carrier, le) (rate(intumwa_message_end_to_end_seconds_bucket{` + of + `}[5m])))`, "p50 {{carrier}}"},
			{`histogram_quantile(0.95, sum by (carrier, le) (rate(intumwa_message_end_to_end_seconds_bucket{` + of + `}[5m])))`, "p95 {{carrier}}"}}}),
		graph(panel{title: "Messages waiting", queries: []query{{`max by (carrier, lane) (intumwa_queue_depth{` + of + `})`, "{{carrier}} {{lane}}"}}}),
		graph(panel{title: "Oldest: ready to go, and since acceptance", unit: "s", queries: []query{
			{`max by (carrier, lane) (intumwa_queue_due_age_seconds{` + of + `})`, "ready {{carrier}} {{lane}}"},
			{`max by (carrier, lane) (intumwa_queue_oldest_age_seconds{` + of + `})`, "accepted {{carrier}} {{lane}}"}}}),
		graph(panel{title: "Unanswered past the response timeout, and late answers", queries: []query{
			{`sum by (link) (intumwa_smpp_submit_unknown_outcome{` + at + `})`, "unanswered {{link}}"},
			{`sum by (link) (increase(intumwa_smpp_submit_timeouts_total{` + at + `}[5m]))`, "newly in 5 min {{link}}"},
			{`sum by (link) (increase(intumwa_smpp_late_responses_total{` + at + `}[5m]))`, "late in 5 min {{link}}"}}}),
		graph(panel{title: "What a carrier should not send", unit: "ops", queries: []query{
			{`sum by (link) (rate(intumwa_smpp_malformed_pdus_total{` + at + `}[5m]))`, "malformed {{link}}"},
			{`sum by (link) (rate(intumwa_smpp_unmatched_responses_total{` + at + `}[5m]))`, "answers to nothing {{link}}"},
			{`sum by (link) (rate(intumwa_smpp_deliveries_refused_total{` + at + `}[5m]))`, "deliveries refused {{link}}"}}}),
	)
}
