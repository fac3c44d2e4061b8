package operate

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/limits"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/authz/envoyconfig"
)

// envoyFlags are from what a configuration of Envoy is written.
type envoyFlags struct{ document, mapping, domain string }

func generateEnvoyCommand() *cobra.Command {
	var e envoyFlags
	cmd := &cobra.Command{
		Use:   "envoy",
		Short: "Print a configuration of Envoy that asks quotad, with a bound of its own",
		Long: `envoy prints a whole configuration of Envoy 1.40 for the limits of one domain. The mapping is the
file of the setting authz: which header, path, method or address makes which descriptor. Each limit
takes of a rule's descriptors those that it needs, in its order. Envoy names the entry of an address
itself: call it masked_remote_address, or remote_address, in the mapping and in the limits.

Each limit has a bound at each Envoy, which admits whatever quotad admits, and holds while quotad
does not decide. Print the configuration again when a limit changes; if it rises, give it to Envoy
before the nodes. Lines marked change are yours.

What Envoy cannot do as /v1/authz does is refused, with its file, line and column. Limits that no
rule leads to are left out with a warning, on stderr.

Exit codes: 0 printed, with or without warnings, 2 nothing is printed.`,
		Example: "  quotad generate envoy --file limits.yaml --map authz.yaml --domain web > envoy.yaml",
		Args:    command.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&e.document, "file", "", "limits `document`, or - for standard input")
	f.StringVar(&e.mapping, "map", "", "`file` with the mapping of requests to descriptors")
	f.StringVar(&e.domain, "domain", "", "`domain` of the limits that Envoy asks for")
	return cmd
}

func (e *envoyFlags) run(cmd *cobra.Command) error {
	switch {
	case e.document == "":
		return exit.Usage(errors.New("--file: name the limits document, as in --file limits.yaml"))
	case e.mapping == "":
		return exit.Usage(errors.New("--map: name the mapping that says what requests are described by, as in --map authz.yaml"))
	case e.domain == "":
		return exit.Usage(errors.New("--domain: name the domain of the limits, as in --domain web"))
	}
	d, err := limits.Load(e.document)
	if err != nil {
		return err
	}
	m, err := authz.Load(e.mapping)
	if err != nil {
		return exit.Invalid(e.mapping, err)
	}
	text, leftOut, err := envoyconfig.Write(envoyconfig.Sources{Document: d, Mapping: m, Domain: e.domain,
		DocumentFile: fileWord(limits.Path(e.document)), MappingFile: fileWord(e.mapping)})
	if err != nil {
		return exit.Usage(err)
	}
	if len(leftOut) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), show.Visible(fmt.Sprintf("quotad: printed with %s\n%s",
			show.Counted(len(leftOut), "warning"), strings.Join(leftOut, "\n"))))
	}
	return printOut(cmd.OutOrStdout(), text)
}

// fileWord returns the name of a file for one line of a comment.
func fileWord(path string) string {
	name := filepath.Base(path)
	if inQuotes := strconv.Quote(name); inQuotes != `"`+name+`"` {
		return inQuotes
	}
	return name
}
