{{/* The name of what the chart makes: that of the release, with quotad in it. */}}
{{- define "quotad.name" -}}
{{- if contains "quotad" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-quotad" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "quotad.selector" -}}
app.kubernetes.io/name: quotad
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The prefix of labels of quotad's own. It should be a DNS name that belongs to whoever publishes
the chart: put yours here. No selector of a StatefulSet has it, so that it can change. */}}
{{- define "quotad.labelPrefix" -}}quotad.example.org{{- end }}

{{- define "quotad.labels" -}}
{{ include "quotad.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "quotad.labelPrefix" . }}/region: {{ .Values.region }}
{{- end }}

{{- define "quotad.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}{{ include "quotad.name" . }}
{{- else }}default{{ end }}
{{- end }}

{{- define "quotad.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Addresses at which nodes of this region find each other, then those of other regions. */}}
{{- define "quotad.seeds" -}}
{{- $name := include "quotad.name" . }}
{{- range $i := until (int .Values.replicas) }}
- "{{ $name }}-{{ $i }}.{{ $name }}-nodes.{{ $.Release.Namespace }}.svc:7946"
{{- end }}
{{- range .Values.seeds }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The node file. What differs from pod to pod comes from variables. */}}
{{- define "quotad.nodeFile" -}}
{{- $v := .Values }}
{{- $admin := ternary "0.0.0.0:8083" "127.0.0.1:8083" $v.admin.expose }}
{{- $file := dict "region" $v.region "nodes" (int $v.replicas) "data_dir" "/data"
  "policy" "/etc/quotad/limits/limits.yaml" "drain_timeout" (printf "%ds" (int $v.drainSeconds))
  "listen" (dict "http" "0.0.0.0:8080" "grpc" "0.0.0.0:8081" "admin" $admin
    "peer" "0.0.0.0:8082" "gossip" "0.0.0.0:7946")
  "seeds" (include "quotad.seeds" . | fromYamlArray) }}
{{- if $v.gossipKeySecret }}
{{- $_ := set $file "gossip_keys" (list "file:/etc/quotad/gossip/gossip.key") }}
{{- end }}
{{- if $v.peerTLSSecret }}
{{- $_ := set $file "peer_tls" (dict "ca" "/etc/quotad/peer-tls/ca.pem") }}
{{- end }}
{{- if $v.apiTLSSecret }}
{{- $tls := dict "cert" "/etc/quotad/api-tls/tls.crt" "key" "/etc/quotad/api-tls/tls.key" }}
{{- if $v.apiTLSCallersCA }}{{ $_ := set $tls "ca" "/etc/quotad/api-tls/ca.crt" }}{{ end }}
{{- $_ := set $file "api_tls" $tls }}
{{- end }}
{{- if and $v.admin.expose $v.admin.tlsSecret }}
{{- $_ := set $file "admin_tls" (dict "cert" "/etc/quotad/admin-tls/tls.crt"
  "key" "/etc/quotad/admin-tls/tls.key") }}
{{- end }}
{{- if $v.rolesSecret }}{{ $_ := set $file "roles" "/etc/quotad/roles/roles.yaml" }}{{ end }}
{{- if $v.redis.caSecret }}
{{- $_ := set $file "redis" (dict "tls" (dict "ca" "/etc/quotad/redis-ca/ca.crt")) }}
{{- end }}
{{- if $v.insecure }}{{ $_ := set $file "insecure" (join "," $v.insecure) }}{{ end }}
{{- toYaml (mergeOverwrite $file (deepCopy $v.settings)) }}
{{- end }}

{{/* Secrets that are mounted, by the folder that they are mounted at. */}}
{{- define "quotad.secrets" -}}
{{- with .Values.peerTLSSecret }}
peer-tls: {{ . | quote }}
{{- end }}
{{- with .Values.gossipKeySecret }}
gossip: {{ . | quote }}
{{- end }}
{{- with .Values.apiTLSSecret }}
api-tls: {{ . | quote }}
{{- end }}
{{- if and .Values.admin.expose .Values.admin.tlsSecret }}
admin-tls: {{ .Values.admin.tlsSecret | quote }}
{{- end }}
{{- with .Values.rolesSecret }}
roles: {{ . | quote }}
{{- end }}
{{- with .Values.redis.caSecret }}
redis-ca: {{ . | quote }}
{{- end }}
{{- end }}

{{/* What a schema cannot say. A node would refuse to start with any of these. */}}
{{- define "quotad.check" -}}
{{- $v := .Values }}
{{- if and (not $v.limits) (not $v.limitsConfigMap) }}
{{- fail "give the limits document as limits, or name a ConfigMap as limitsConfigMap" }}
{{- end }}
{{- if and $v.limits $v.limitsConfigMap }}
{{- fail "limits and limitsConfigMap are both given: keep one of the two" }}
{{- end }}
{{- if not (or $v.peerTLSSecret (has "peer" $v.insecure)) }}
{{- fail "give peerTLSSecret, or add peer to insecure if only quotad reaches port 8082. Make the certificates with quotad keys ca and quotad keys cert --node POD" }}
{{- end }}
{{- if not (or $v.gossipKeySecret (has "gossip" $v.insecure)) }}
{{- fail "give gossipKeySecret, or add gossip to insecure if only quotad reaches port 7946. Make the key once for all regions: quotad keys gossip --out gossip.key; then in each cluster: kubectl create secret generic quotad-gossip --from-file=gossip.key, and gossipKeySecret=quotad-gossip" }}
{{- end }}
{{- $asked := and $v.apiTLSSecret (or $v.rolesSecret $v.apiTLSCallersCA) }}
{{- if not (or $asked (has "api" $v.insecure)) }}
{{- fail "give apiTLSSecret and rolesSecret, or add api to insecure if only your own services call" }}
{{- end }}
{{- if and $v.admin.expose (not (and $v.admin.tlsSecret $v.rolesSecret)) (not (has "admin" $v.insecure)) }}
{{- fail "admin.expose needs admin.tlsSecret and rolesSecret, or admin in insecure" }}
{{- end }}
{{- if and $v.serviceMonitor.enabled (not $v.admin.expose) }}
{{- fail "serviceMonitor needs admin.expose: metrics are on the admin listener" }}
{{- end }}
{{- end }}
