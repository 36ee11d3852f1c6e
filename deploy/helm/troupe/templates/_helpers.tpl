{{- define "troupe.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "troupe.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "troupe.labels" -}}
{{ include "troupe.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "troupe.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "troupe.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "troupe.image" -}}
{{- with .Values.image }}{{ if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{- define "troupe.agentsMap" -}}
{{- if .Values.agents.existingConfigMap }}{{ .Values.agents.existingConfigMap }}{{ else }}{{ include "troupe.name" . }}-agents{{ end }}
{{- end }}

{{/* The pod of one part: (dict "root" $ "part" .Values.api "port" 4600 "args" (list ...)) */}}
{{- define "troupe.pod" -}}
serviceAccountName: {{ include "troupe.serviceAccount" .root }}
automountServiceAccountToken: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
containers:
  - name: troupe
    image: {{ include "troupe.image" .root | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: {{ toJson (concat .args (list "--prefix" .root.Values.prefix "--log-level" .root.Values.logLevel) .part.extraArgs (list (printf "/app/agents/%s" .root.Values.agents.file))) }}
    envFrom:
      - secretRef: { name: {{ .root.Values.existingSecret | quote }} }
    {{- with .root.Values.extraEnv }}
    env: {{ toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - { name: http, containerPort: {{ .port }} }
    startupProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 2, failureThreshold: 30 }
    livenessProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 }
    readinessProbe: { httpGet: { path: /readyz, port: http }, periodSeconds: 5, timeoutSeconds: 5 }
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    resources: {{ toYaml .part.resources | nindent 6 }}
    volumeMounts:
      - { name: tmp, mountPath: /tmp }
      - { name: agents, mountPath: /app/agents, readOnly: true }
volumes:
  - { name: tmp, emptyDir: {} }
  - name: agents
    configMap: { name: {{ include "troupe.agentsMap" .root }} }
{{- with .part.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .part.topologySpreadConstraints }}
topologySpreadConstraints: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}
