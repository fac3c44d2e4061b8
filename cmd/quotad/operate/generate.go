package operate

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/deploy/monitoring"
	"github.com/quotad/quotad/policy"
)

func generateCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "generate",
		Short: "Print alert rules, a dashboard, a schema and other files that come along",
		Long:  `generate prints files that go with this version of quotad to standard output; man writes them into a folder.`,
	}, generateAlertsCommand(), generateDashboardCommand(), generateEnvoyCommand(), generateSchemaCommand())
}

func generateAlertsCommand() *cobra.Command {
	var runbooks string
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Print alert rules for Prometheus",
		Long: `alerts prints alert rules for Prometheus 2.42 and later. They suppose that all nodes
of one deployment are scraped as one job, whose name begins with quotad. The annotation
runbook_url of each rule leads to a page that says what to do. With --runbooks it begins with the
address at which you publish these pages; else it is their path in the source of quotad.`,
		Example: `  quotad generate alerts > quotad-alerts.yaml
  quotad generate alerts --runbooks https://wiki.example.org/runbooks > quotad-alerts.yaml`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at := strings.TrimSuffix(runbooks, "/")
			if at != "" && !plainAddress.MatchString(at) {
				return exit.Usage(fmt.Errorf("--runbooks %q: give an address or a path without "+
					"blanks and quotes, such as https://wiki.example.org/runbooks", runbooks))
			}
			return printOut(cmd.OutOrStdout(), monitoring.Alerts(at))
		},
	}
	cmd.Flags().StringVar(&runbooks, "runbooks", "",
		"address at which the runbook pages are published")
	return cmd
}

// plainAddress matches what needs no quotes in YAML. It excludes a mapping's ": " and a comment's
// " #", which need a blank.
var plainAddress = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9/._~:?=&%+-]*[A-Za-z0-9/._~=-]$`)

func generateDashboardCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dashboard",
		Short: "Print a dashboard for Grafana",
		Long: `dashboard prints a dashboard as JSON, to be imported in Grafana 10 or later: decisions
by limit and reason, units that moved between regions, degraded links, round trips, clocks, Redis,
journals and limits documents.`,
		Example: "  quotad generate dashboard > quotad-dashboard.json",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printOut(cmd.OutOrStdout(), monitoring.Dashboard())
		},
	}
}

func generateSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of limits documents, for editors",
		Long: `schema prints the JSON Schema (draft 2020-12) of limits documents. Editors complete
and check fields with it. Most find it by a first line in the document:

  # yaml-language-server: $schema=limits.schema.json

It refuses nothing that quotad accepts. quotad limits validate finds more, such as a name that is
given twice.`,
		Example: "  quotad generate schema > limits.schema.json",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printOut(cmd.OutOrStdout(), policy.Schema())
		},
	}
}

func printOut(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}
