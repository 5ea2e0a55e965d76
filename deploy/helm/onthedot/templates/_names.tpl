{{/* The name of the release's parts. */}}
{{- define "onthedot.name" -}}
{{- if contains "onthedot" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-onthedot" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "onthedot.selector" -}}
app.kubernetes.io/name: onthedot
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "onthedot.labels" -}}
{{ include "onthedot.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "onthedot.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "onthedot.secret" -}}
{{ .Values.secret.existing | default (include "onthedot.name" .) }}
{{- end -}}

{{/* Nobody but our own user, and nothing to write to but what is mounted. */}}
{{- define "onthedot.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "onthedot.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The environment of every container. */}}
{{- define "onthedot.env" -}}
- name: ONTHEDOT_STORE
  valueFrom:
    secretKeyRef: {name: {{ include "onthedot.secret" . }}, key: store}
{{- $own := list "STORE" "ADMIN_KEY" "HOST" "PORT" "ROLES" "WORKERS" "LABELS" "CONCURRENCY" "NODE_NAME" "METRICS_PORT" "GRACE" "PUBLIC_URL" "TLS_CERT" "TLS_KEY" }}
{{- range $name, $value := .Values.settings }}
{{- if has $name $own }}
{{- fail (printf "settings.%s is set by the chart: see its other values" $name) }}
{{- end }}
- name: ONTHEDOT_{{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What nodes have besides. */}}
{{- define "onthedot.nodeEnv" -}}
- name: ONTHEDOT_HOST
  value: 0.0.0.0
- name: ONTHEDOT_NODE_NAME
  valueFrom:
    fieldRef: {fieldPath: metadata.name}
- name: ONTHEDOT_METRICS_PORT
  value: {{ .Values.metricsPort | quote }}
- name: ONTHEDOT_GRACE
  value: "{{ .Values.graceSeconds }}s"
{{- range $name, $value := dict "LOGS_BASE_DIRECTORY" "/var/lib/onthedot/logs" "OBJECT_STORE" "/var/lib/onthedot/objects" }}
{{- if not (hasKey $.Values.settings $name) }}
- name: ONTHEDOT_{{ $name }}
  value: {{ $value }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "onthedot.volumes" -}}
- name: work
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- if .Values.settingsFile }}
- name: settings
  configMap: {name: {{ include "onthedot.name" . }}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "onthedot.mounts" -}}
- {name: work, mountPath: /var/lib/onthedot}
- {name: tmp, mountPath: /tmp}
{{- if .Values.settingsFile }}
- {name: settings, mountPath: /etc/onthedot, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Probes of a node: on the port that answers without a key. A database that is away is no reason to restart. */}}
{{- define "onthedot.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* Probes of a witness: it is alive as long as it looks, whatever it sees. */}}
{{- define "onthedot.witnessProbes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}
