package grafana

// wall is what the NOC looks at all night: a strip that says whether anything
// pages, one row a link, and what fires.
func wall() Dashboard {
	perLink := func(perCarrier string) string { // a carrier's value in the rows of its links
		return `max by (carrier, link) (intumwa_smpp_sessions_configured) * 0 + on (carrier) group_left () ` + perCarrier
	}
	return page("wall", "NOC wall", "One row a link. No colour: all is well. Orange: soon. Red: now.", "1h", nil,
		number(panel{title: "Pages", width: 3, queries: []query{{expr: `count(ALERTS{alertstate="firing", severity="page"}) or vector(0)`}},
			thresholds: ptr(steps(calm, step{1, now}))}),
		number(panel{title: "Warnings", width: 3, queries: []query{{expr: `count(ALERTS{alertstate="firing", severity="warning"}) or vector(0)`}},
			thresholds: ptr(steps(calm, step{1, soon}))}),
		number(panel{title: "Links not bound", width: 3, queries: []query{{expr: `count(carrier_link:intumwa_state:code != 3) or vector(0)`}},
			thresholds: ptr(steps(calm, step{1, now}))}),
		number(panel{title: "Processes", about: "Gateway processes that answer, as a share of those that Prometheus knows.", width: 3, unit: "percentunit",
			queries: []query{{expr: `avg(up{job="intumwa"}) or vector(0)`}}, thresholds: ptr(steps(now, step{0.01, soon}, step{1, calm}))}),
		number(panel{title: "PostgreSQL", width: 3, queries: []query{{expr: `min(intumwa_database_up)`}},
			mappings: words(word{"1", "up", ""}, word{"0", "AWAY", ""}), thresholds: ptr(steps(now, step{1, calm}))}),
		number(panel{title: "Redis", width: 3, queries: []query{{expr: `min(intumwa_redis_up)`}},
			mappings: words(word{"1", "up", ""}, word{"0", "AWAY", ""}), thresholds: ptr(steps(now, step{1, calm}))}),
		number(panel{title: "Segments a second", width: 3, unit: "short", decimals: ptr(1),
			queries: []query{{expr: `sum(carrier_link:intumwa_segments:rate1m) or vector(0)`}}}),
		number(panel{title: "API p95", width: 3, unit: "s", queries: []query{{expr: `intumwa:http_seconds:p95_5m`}},
			thresholds: ptr(steps(calm, step{0.25, soon}, step{0.5, now}))}),

		table(panel{title: "Links", width: 24, height: 11,
			about: "DEAD: bound, submits in flight, none answered for a minute. Oldest waiting: how long the message that is ready to go has waited. Receipts: of the last hour's segments."},
			[]string{"carrier", "link"},
			column{title: "State", expr: `carrier_link:intumwa_state:code`, width: 170, mappings: words(
				word{"4", "BOUND, DEAD", worst}, word{"3", "bound", calm}, word{"2", "paused", asleep},
				word{"1", "connecting", soon}, word{"0", "DOWN", now}, word{"-1", "GONE", worst}),
				thresholds: ptr(steps(calm))},
			column{title: "Segments/s", expr: `carrier_link:intumwa_segments:rate1m`, unit: "short", decimals: ptr(1)},
			column{title: "Limit/s", expr: `max by (carrier, link) (intumwa_smpp_pace_limit_per_second)`, unit: "short", decimals: ptr(0),
				mappings: words(word{"0", "none", ""})},
			column{title: "Of limit", expr: `carrier_link:intumwa_segments:rate1m / on (carrier, link) (max by (carrier, link) (intumwa_smpp_pace_limit_per_second) > 0)`,
				unit: "percentunit", gauge: true, thresholds: ptr(steps("semi-dark-blue", step{0.9, soon}))},
			column{title: "Window", expr: `carrier_link:intumwa_window:ratio`, unit: "percentunit", gauge: true,
				thresholds: ptr(steps("semi-dark-blue", step{0.8, soon}, step{0.95, now}))},
			column{title: "Submit p95", expr: `carrier_link:intumwa_submit_seconds:p95_5m`, unit: "s",
				thresholds: ptr(steps(calm, step{1, soon}, step{2, now}))},
			column{title: "Throttled", expr: `carrier_link:intumwa_throttled:ratio1m`, unit: "percentunit", decimals: ptr(1),
				thresholds: ptr(steps(calm, step{0.05, soon}, step{0.25, now}))},
			column{title: "Receipts", expr: perLink(`carrier:intumwa_receipts:ratio1h`), unit: "percentunit", decimals: ptr(0),
				thresholds: ptr(steps(now, step{0.3, soon}, step{0.6, calm}))},
			column{title: "Oldest waiting", expr: perLink(`carrier:intumwa_due_age_seconds:max`), unit: "s", decimals: ptr(0),
				thresholds: ptr(steps(calm, step{60, soon}, step{300, now}))},
			column{title: "Unanswered", expr: `sum by (carrier, link) (intumwa_smpp_submit_unknown_outcome)`, unit: "short", decimals: ptr(0),
				thresholds: ptr(steps(calm, step{1, soon}, step{50, now}))},
			column{title: "Breaker", expr: `max by (carrier, link) (intumwa_link_breaker_open) or max by (carrier, link) (intumwa_smpp_sessions_configured) * 0`,
				mappings: words(word{"0", "–", calm}, word{"1", "OPEN", now}), thresholds: ptr(steps(calm))},
		),

		table(panel{title: "What fires, and what to do first is in its runbook", width: 12, height: 8,
			about: "docs/runbooks has a page for each; Alertmanager's notice has the link."},
			[]string{"alertname", "severity", "carrier", "link", "instance"},
			column{title: "For", expr: `max by (alertname, severity, carrier, link, instance) (time() - ALERTS_FOR_STATE) and on (alertname, severity, carrier, link) max by (alertname, severity, carrier, link) (ALERTS{alertstate="firing"})`,
				unit: "s", decimals: ptr(0)}),
		graph(panel{title: "Segments a second", unit: "short", queries: []query{{`carrier_link:intumwa_segments:rate1m`, "{{link}}"}}}),
		graph(panel{title: "Oldest waiting", unit: "s", queries: []query{{`carrier:intumwa_due_age_seconds:max`, "{{carrier}}"}},
			thresholds: ptr(steps(calm, step{60, soon}, step{300, now})), lines: true}),
		graph(panel{title: "Messages waiting", unit: "short", queries: []query{{`max by (carrier, lane) (intumwa_queue_depth)`, "{{carrier}} {{lane}}"}}}),
	)
}
