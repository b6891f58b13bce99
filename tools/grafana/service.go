package grafana

// api is the public interface: requests, refusals, commits.
func api() Dashboard {
	return page("api", "API", "Requests to the public interface and what they were answered.", "3h",
		[]Variable{choice("route", "Route", "label_values(intumwa_http_requests_total, route)")},
		number(panel{title: "Requests a second", width: 4, decimals: ptr(1), queries: []query{{expr: `sum(rate(intumwa_http_requests_total[1m]))`}}}),
		number(panel{title: "5xx of 5 minutes", width: 4, unit: "percentunit", decimals: ptr(2), queries: []query{{expr: `intumwa:http_errors:ratio5m`}},
			thresholds: ptr(steps(calm, step{0.001, soon}, step{0.0144, now}))}),
		number(panel{title: "5xx of an hour", width: 4, unit: "percentunit", decimals: ptr(2), queries: []query{{expr: `intumwa:http_errors:ratio1h`}},
			thresholds: ptr(steps(calm, step{0.001, soon}, step{0.0144, now}))}),
		number(panel{title: "p95", width: 4, unit: "s", queries: []query{{expr: `intumwa:http_seconds:p95_5m`}},
			thresholds: ptr(steps(calm, step{0.25, soon}, step{0.5, now}))}),
		number(panel{title: "In flight", width: 4, queries: []query{{expr: `sum(intumwa_http_requests_in_flight)`}}}),
		number(panel{title: "Rate limits counted locally", about: "Redis did not answer the limiter.", width: 4, decimals: ptr(0),
			queries: []query{{expr: `sum(increase(intumwa_rate_limit_local_total[5m]))`}}, thresholds: ptr(steps(calm, step{1, soon}))}),
		graph(panel{title: "Requests by route and code", unit: "reqps", stack: true, queries: []query{
			{`sum by (route, code) (rate(intumwa_http_requests_total{route=~"$route"}[$__rate_interval]))`, "{{route}} {{code}}"}}}),
		graph(panel{title: "Time to answer, by route (p95)", unit: "s", queries: []query{
			{`histogram_quantile(0.95, sum by (route, le) (rate(intumwa_http_request_duration_seconds_bucket{route=~"$route"}[5m])))`, "{{route}}"}},
			thresholds: ptr(steps(calm, step{0.5, now})), lines: true}),
		graph(panel{title: "Messages accepted", unit: "ops", stack: true, queries: []query{
			{`sum by (kind) (rate(intumwa_messages_accepted_total[$__rate_interval]))`, "{{kind}}"}}}),
		graph(panel{title: "Segments by encoding", unit: "ops", stack: true, queries: []query{
			{`sum by (encoding) (rate(intumwa_message_segments_total[$__rate_interval]))`, "{{encoding}}"}}}),
		graph(panel{title: "Refused by rule (400)", unit: "ops", stack: true, queries: []query{
			{`sum by (reason) (rate(intumwa_requests_rejected_total[$__rate_interval])) or vector(0)`, "{{reason}}"}}}),
		graph(panel{title: "Rate limited, wrong tokens, replays", unit: "ops", queries: []query{
			{`sum(rate(intumwa_rate_limited_total[$__rate_interval]))`, "rate limited"},
			{`sum(rate(intumwa_http_requests_total{code="401"}[$__rate_interval])) or vector(0)`, "wrong token"},
			{`sum(rate(intumwa_idempotency_replays_total[$__rate_interval]))`, "idempotent replay"}}}),
		graph(panel{title: "Time of a group commit", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (le) (rate(intumwa_intake_commit_duration_seconds_bucket[5m])))`, "p50"},
			{`histogram_quantile(0.95, sum by (le) (rate(intumwa_intake_commit_duration_seconds_bucket[5m])))`, "p95"}}}),
		graph(panel{title: "Requests in a group commit", queries: []query{
			{`sum(rate(intumwa_intake_commit_requests_sum[5m])) / sum(rate(intumwa_intake_commit_requests_count[5m]))`, "mean"}}}),
		graph(panel{title: "Look-ups of tokens", unit: "ops", queries: []query{
			{`sum by (source) (rate(intumwa_token_lookups_total[$__rate_interval]))`, "{{source}}"}}}),
		graph(panel{title: "Connections open and dropped, bodies dropped", queries: []query{
			{`sum by (listener) (intumwa_http_connections_open)`, "open: {{listener}}"},
			{`sum by (reason) (increase(intumwa_http_connections_dropped_total[5m])) or vector(0)`, "dropped in 5 m: {{reason}}"},
			{`sum(increase(intumwa_http_memory_dropped_total[5m])) or vector(0)`, "bodies dropped in 5 m"}}}),
		graph(panel{title: "Memory of bodies and answers", unit: "bytes", queries: []query{
			{`max by (instance) (intumwa_http_memory_octets) or vector(0)`, "{{instance}}"}}}),
		graph(panel{title: "Requests that waited for somebody else's balance", unit: "ops", queries: []query{
			{`sum(rate(intumwa_intake_set_aside_total[$__rate_interval])) or vector(0)`, "set aside"}}}),
		graph(panel{title: "Requests to the dashboard, by code", unit: "reqps", stack: true, queries: []query{
			{`sum by (code) (rate(intumwa_dashboard_requests_total[$__rate_interval])) or vector(0)`, "{{code}}"}}}),
	)
}

// webhooks is what customers are told.
func webhooks() Dashboard {
	return page("webhooks", "webhooks", "Calls to customers' endpoints.", "3h", nil,
		number(panel{title: "Most overdue", width: 4, unit: "s", decimals: ptr(0), queries: []query{{expr: `max(intumwa_webhook_queue_oldest_age_seconds)`}},
			thresholds: ptr(steps(calm, step{30, soon}, step{60, now}))}),
		number(panel{title: "Failing of a minute", width: 4, unit: "percentunit", decimals: ptr(1), queries: []query{{expr: `intumwa:webhook_failures:ratio1m`}},
			thresholds: ptr(steps(calm, step{0.05, soon}, step{0.2, now}))}),
		number(panel{title: "Calls a second", width: 4, decimals: ptr(1), queries: []query{{expr: `sum(rate(intumwa_webhook_attempts_total[1m]))`}}}),
		number(panel{title: "Calls in flight", width: 4, queries: []query{{expr: `sum(intumwa_webhook_calls_in_flight)`}}}),
		number(panel{title: "Given up in an hour", width: 4, decimals: ptr(0), queries: []query{{expr: `sum(increase(intumwa_webhook_exhausted_total[1h]))`}},
			thresholds: ptr(steps(calm, step{1, soon}))}),
		number(panel{title: "Active endpoints", width: 4, queries: []query{{expr: `max(intumwa_webhook_endpoints{state="active"})`}}}),
		graph(panel{title: "Calls by result", unit: "ops", stack: true, queries: []query{
			{`sum by (result) (rate(intumwa_webhook_attempts_total[$__rate_interval]))`, "{{result}}"}}}),
		graph(panel{title: "Calls by event", unit: "ops", stack: true, queries: []query{
			{`sum by (event) (rate(intumwa_webhook_attempts_total[$__rate_interval]))`, "{{event}}"}}}),
		graph(panel{title: "Duration of a call", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (le) (rate(intumwa_webhook_attempt_duration_seconds_bucket[5m])))`, "p50"},
			{`histogram_quantile(0.95, sum by (le) (rate(intumwa_webhook_attempt_duration_seconds_bucket[5m])))`, "p95"}}}),
		graph(panel{title: "Most overdue delivery", unit: "s", queries: []query{{`max(intumwa_webhook_queue_oldest_age_seconds)`, "overdue"}},
			thresholds: ptr(steps(calm, step{60, now})), lines: true}),
		graph(panel{title: "Endpoints", queries: []query{{`max by (state) (intumwa_webhook_endpoints)`, "{{state}}"}}}),
	)
}

// billing is the credits and the books.
func billing() Dashboard {
	return page("billing", "billing", "Credits taken and given back, and whether the books are right.", "24h", nil,
		number(panel{title: "Companies whose balance is wrong", width: 6, queries: []query{{expr: `max(intumwa_ledger_mismatches)`}},
			thresholds: ptr(steps(calm, step{1, now}))}),
		number(panel{title: "Books checked ago", width: 6, unit: "s", decimals: ptr(0), queries: []query{{expr: `time() - max(intumwa_ledger_checked_timestamp_seconds)`}},
			thresholds: ptr(steps(calm, step{7200, soon}, step{10800, now}))}),
		number(panel{title: "Credits taken in 24 h", width: 6, decimals: ptr(0), queries: []query{{expr: `sum(increase(intumwa_credits_debited_total[24h]))`}}}),
		number(panel{title: "Messages refunded in 24 h", width: 6, decimals: ptr(0), queries: []query{{expr: `sum(increase(intumwa_messages_refunded_total[24h]))`}},
			thresholds: ptr(steps(calm, step{1, soon}))}),
		graph(panel{title: "Credits taken a second", queries: []query{{`sum(rate(intumwa_credits_debited_total[$__rate_interval]))`, "credits"}}}),
		graph(panel{title: "Messages refunded in an hour", queries: []query{{`sum(increase(intumwa_messages_refunded_total[1h]))`, "messages"}}}),
		graph(panel{title: "Refused for want of credits", unit: "ops", queries: []query{
			{`sum(rate(intumwa_requests_rejected_total{reason="insufficient_credits"}[$__rate_interval])) or vector(0)`, "requests"}}}),
		graph(panel{title: "Segments accepted a second", queries: []query{{`sum(rate(intumwa_message_segments_total[$__rate_interval]))`, "segments"}}}),
	)
}

// runtime is the processes and their stores.
func runtime() Dashboard {
	const at = `job="intumwa", instance=~"$instance"`
	return page("runtime", "runtime", "The gateway's processes, PostgreSQL, Redis and the queue between intake and dispatcher.", "3h",
		[]Variable{choice("instance", "Process", `label_values(up{job="intumwa"}, instance)`)},
		table(panel{title: "Processes", width: 24, height: 6}, []string{"instance", "version"},
			column{title: "Version", expr: `max by (instance, version) (intumwa_build_info)`, mappings: words(word{"1", "runs", ""})},
			column{title: "Up for", expr: `(time() - max by (instance) (process_start_time_seconds{job="intumwa"})) * on (instance) group_left (version) max by (instance, version) (intumwa_build_info)`, unit: "s", decimals: ptr(0)},
			column{title: "Memory", expr: `max by (instance) (process_resident_memory_bytes{job="intumwa"}) * on (instance) group_left (version) max by (instance, version) (intumwa_build_info)`, unit: "bytes"},
			column{title: "Open files", expr: `max by (instance) (process_open_fds{job="intumwa"} / process_max_fds{job="intumwa"}) * on (instance) group_left (version) max by (instance, version) (intumwa_build_info)`,
				unit: "percentunit", gauge: true, thresholds: ptr(steps("semi-dark-blue", step{0.7, soon}, step{0.9, now}))}),
		graph(panel{title: "Processor", unit: "percentunit", queries: []query{{`sum by (instance) (rate(process_cpu_seconds_total{` + at + `}[$__rate_interval]))`, "{{instance}}"}}}),
		graph(panel{title: "Memory", unit: "bytes", queries: []query{
			{`max by (instance) (process_resident_memory_bytes{` + at + `})`, "resident {{instance}}"},
			{`max by (instance) (go_memstats_heap_inuse_bytes{` + at + `})`, "heap {{instance}}"}}}),
		graph(panel{title: "Goroutines", queries: []query{{`max by (instance) (go_goroutines{` + at + `})`, "{{instance}}"}}}),
		graph(panel{title: "Longest pause of the garbage collector", unit: "s", queries: []query{{`max by (instance) (go_gc_duration_seconds{` + at + `, quantile="1"})`, "{{instance}}"}}}),
		graph(panel{title: "Database connections in use", unit: "percentunit", max: ptr(1.0), queries: []query{
			{`max by (instance, pool) (intumwa_db_pool_in_use{` + at + `} / intumwa_db_pool_max{` + at + `})`, "{{instance}} {{pool}}"}},
			thresholds: ptr(steps(calm, step{0.9, now})), lines: true}),
		graph(panel{title: "Stores", about: "1 can be used, 0 cannot.", max: ptr(1.0), queries: []query{
			{`min by (instance) (intumwa_database_up{` + at + `})`, "PostgreSQL {{instance}}"},
			{`min by (instance) (intumwa_database_standby_ok{` + at + `})`, "standby of PostgreSQL {{instance}}"},
			{`min by (instance) (intumwa_redis_up{` + at + `})`, "Redis {{instance}}"},
			{`min by (instance) (intumwa_queue_usable{` + at + `})`, "worst queue {{instance}}"},
			{`min by (instance) (intumwa_redis_settings_ok{` + at + `})`, "Redis settings {{instance}}"}}}),
		graph(panel{title: "Time of a settling transaction (p95)", unit: "s", queries: []query{
			{`histogram_quantile(0.95, sum by (carrier, le) (rate(intumwa_settle_duration_seconds_bucket{` + at + `}[5m])))`, "{{carrier}}"}}}),
		graph(panel{title: "The queue: pushed again, stale, not pushed, passed by", unit: "ops", queries: []query{
			{`sum(rate(intumwa_queue_redeliveries_total{` + at + `}[$__rate_interval]))`, "pushed again"},
			{`sum(rate(intumwa_queue_stale_entries_total{` + at + `}[$__rate_interval])) or vector(0)`, "stale entries"},
			{`sum(rate(intumwa_queue_bypassed_total{` + at + `}[$__rate_interval])) or vector(0)`, "taken from the database"},
			{`sum by (fault) (rate(intumwa_queue_faults_total{` + at + `}[$__rate_interval])) or vector(0)`, "fault: {{fault}}"},
			{`sum(rate(intumwa_queue_push_failures_total{` + at + `}[$__rate_interval]))`, "not pushed by intake"}}}),
		graph(panel{title: "Tasks: when they were last done", unit: "s", queries: []query{{`time() - max by (task) (intumwa_task_last_success_timestamp_seconds{` + at + `})`, "{{task}}"}},
			thresholds: ptr(steps(calm, step{300, now})), lines: true}),
		graph(panel{title: "Scheduled messages", about: "What waits for its time, and what was put on its way when that had come.", queries: []query{
			{`max by (lane) (intumwa_scheduled_messages)`, "waiting: {{lane}}"},
			{`sum by (lane) (increase(intumwa_scheduled_released_total[5m]))`, "released in 5 min: {{lane}}"},
			{`max(intumwa_scheduled_late_seconds)`, "seconds late"}}}),
		graph(panel{title: "Deliveries not yet answered to carriers", queries: []query{
			{`sum by (link) (intumwa_smpp_deliveries_unanswered{` + at + `})`, "{{link}}"}}}),
		graph(panel{title: "Change notices", about: "Approvals, tokens, endpoints, links changed by other processes; a new connection clears the caches.", queries: []query{
			{`sum by (subject) (increase(intumwa_notices_total{` + at + `}[5m])) or vector(0)`, "{{subject}}"},
			{`sum(increase(intumwa_notices_connections_total{` + at + `}[5m])) or vector(0)`, "connections anew"},
			{`min by (instance) (intumwa_notices_up{` + at + `})`, "heard {{instance}}"}}}),
		graph(panel{title: "Configuration: how old, and whether the last reload was taken", unit: "s", queries: []query{
			{`time() - max by (instance) (intumwa_config_read_timestamp_seconds{` + at + `})`, "read ago {{instance}}"},
			{`min by (instance) (intumwa_config_reload_ok{` + at + `})`, "1 taken, 0 refused {{instance}}"}}}),
	)
}
