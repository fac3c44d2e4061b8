// Package monitoring holds the alert rules for Prometheus and the dashboard for Grafana. Its tests
// fail if one of them names a metric or a label that nodes do not have, or if an alert has no
// runbook page or no unit test.
package monitoring

import (
	_ "embed"
	"strings"
)

//go:embed alerts.yaml
var alerts string

// RunbookFolder is the folder of the runbook pages in the source of quotad. Each alert has a page
// of its name there.
const RunbookFolder = "docs/operations/runbooks"

// Alerts returns the alert rules as YAML. The annotation runbook_url of each rule begins with
// runbooks, an address or a folder without a slash at its end. Empty: RunbookFolder.
func Alerts(runbooks string) string {
	if runbooks == "" {
		return alerts
	}
	return strings.ReplaceAll(alerts, "runbook_url: "+RunbookFolder+"/",
		"runbook_url: "+runbooks+"/")
}

//go:embed dashboard.json
var dashboard string

// Dashboard returns the dashboard as JSON, to be imported in Grafana 10 or later. It asks for its
// data source and its job there.
func Dashboard() string { return dashboard }
