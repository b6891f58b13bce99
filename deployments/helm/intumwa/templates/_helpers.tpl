{{- define "intumwa.labels" -}}
app.kubernetes.io/name: intumwa
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of an object, with its role: dict "root" $ "role" "api". */}}
{{- define "intumwa.object" -}}
{{ include "intumwa.labels" .root }}
app.kubernetes.io/component: {{ .role }}
app.kubernetes.io/part-of: intumwa
app.kubernetes.io/version: {{ .root.Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "intumwa.selector" -}}
{{ include "intumwa.labels" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "intumwa.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The Secrets of a role's pods. */}}
{{- define "intumwa.secrets" -}}
{{- $of := dict "api" (list "database" "redis" "codes") "dispatcher" (list "database" "redis" "carriers" "codes") "webhooks" (list "database" "redis" "encryption" "codes") "dashboard" (list "database" "redis" "encryption" "codes") "smpp" (list "database" "redis" "codes") "migrate" (list "database") -}}
{{- $secrets := .root.Values.secrets -}}
{{- range index $of .role }}
- secretRef:
    name: {{ index $secrets . }}
{{- end }}
{{- if and (has .role (list "webhooks" "dashboard")) $secrets.mail }}
- secretRef:
    name: {{ $secrets.mail }}
{{- end }}
{{- end }}

{{/* The roles that have pods, as a JSON list. */}}
{{- define "intumwa.roles" -}}
{{- concat (list "api" "dispatcher" "webhooks" "dashboard") (ternary (list "smpp") list .Values.smppServer.enabled) | toJson }}
{{- end }}

{{/* The configuration: the values' with what the chart must have. */}}
{{- define "intumwa.config" -}}
{{- if not (or .Values.withoutProxy (dig "api" "trusted_proxies" list .Values.config)) }}
{{- fail "config.api.trusted_proxies is required: whose X-Forwarded-For counts, such as the network of your ingress's pods. Without it every visitor shares the ingress's address. withoutProxy: true says that there is none" }}
{{- end }}
{{- $must := dict "api" (dict "listen" "0.0.0.0:8080") "ops" (dict "listen" "0.0.0.0:9090") "dashboard" (dict "listen" "0.0.0.0:8081") "log" (dict "format" "json") "accounts" (dict "otp_key" "${INTUMWA_ACCOUNTS_OTP_KEY}") "encryption_key" "${INTUMWA_ENCRYPTION_KEY}" -}}
{{- $usual := dict "ops" (dict "networks" (list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" "100.64.0.0/10" "fc00::/7")) -}}
{{- if .Values.withoutProxy }}{{ $usual = merge (dict "api" (dict "trusted_proxies" (list "127.0.0.1"))) $usual }}{{ end -}}
{{- if .Values.smppServer.enabled }}{{ $_ := set $must "smpp_server" (dict "listen" "0.0.0.0:2776" "tls" (dict "cert" "/etc/intumwa-smpp/tls.crt" "key" "/etc/intumwa-smpp/tls.key")) }}{{ end -}}
{{- toYaml (mergeOverwrite $usual (deepCopy .Values.config) $must) }}
{{- end }}

{{- define "intumwa.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "intumwa.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
