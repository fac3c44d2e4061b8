package limits

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/envoyimport"
	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/zones"
)

func importCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "import",
		Short: "Make a limits document from the configuration of another rate limiter",
	}, importEnvoyCommand())
}

// envoyImport holds the flags of one import.
type envoyImport struct {
	regions     []string
	calendar    bool
	timezone    string
	descriptors string
	previous    string // the name of a document
	options     envoyimport.Options
}

func importEnvoyCommand() *cobra.Command {
	var e envoyImport
	cmd := &cobra.Command{
		Use:   "envoy-ratelimit DIR|FILE",
		Short: "Make a limits document from the configuration of envoyproxy/ratelimit",
		Long: `envoy-ratelimit prints a limits document made from the .yaml and .yml files of a folder and its subfolders, or from
one file, that envoyproxy/ratelimit reads. Names that begin with a dot are passed over, and links to folders with a
warning. What a limits document cannot express is refused, with its file, line and column: shadow_mode
together with quota_mode, keys and domains with blanks, quotes, commas, = or *. What changes no decision (detailed_metric,
value_to_metric) is left out with a warning, on stderr. A limit of 0 requests becomes an exemption that denies.

Files are read as envoyproxy/ratelimit reads them: with anchors, aliases and merge keys (<<), yes and on for true, 0x10 and
010 as numbers, and only the first document of a file. A field where it has no effect, and a merge key behind a field that
it overrules, get a warning. A name that envoyproxy/ratelimit does not know is refused, as it is there.

Days, weeks, months and years have the lengths that envoyproxy/ratelimit gives them: 24h, 168h, 720h and 8760h, counted
from 1970 in UTC. With --calendar they are those of the calendar. The printed document says which.

envoyproxy/ratelimit counts past a limit, so that a cost that is charged after the fact blocks later requests. Here a cost
that does not fit is not charged, unless the limit has charge: always. --charge-always writes that for the limits of these
names of the printed document; give it for those that Envoy charges at the end of a stream (apply_on_stream_done).

With --keep-going a file that cannot be imported refuses no other: what is wrong with it is on stderr, the printed document
names it in a comment, and limits what the others limit. Its domain has no limits then, unless another file has some.

With --previous the document gets the version of the one that was made before, or the next version if it means something
else. Nothing else is taken from that one: give the same regions and options again. Print to another file than FILE.

Exit codes: 0 printed, with or without warnings, 1 printed without the files that --keep-going left out, 2 nothing is
printed.`,
		Example: "  quotad limits import envoy-ratelimit /data/ratelimit/config --region us-east=2 --region eu-west=1 > limits.yaml",
		Args:    command.OneArgument("folder or file with the configuration of envoyproxy/ratelimit", "/data/ratelimit/config"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&e.regions, "region", nil, "`name=weight` of a region of the document, or its name for weight 1; once for each region")
	f.BoolVar(&e.calendar, "calendar", false, "windows of the calendar for days, weeks, months and years")
	f.StringVar(&e.timezone, "timezone", "UTC", "time `zone` of the calendar, such as Europe/Berlin")
	f.BoolVar(&e.options.MergeDomains, "merge-domains", false, "let several files describe one domain")
	f.StringVar(&e.descriptors, "descriptors", string(policy.DecideApart),
		"apart decides each descriptor of a request alone, as envoyproxy/ratelimit does; together charges all or none")
	f.StringSliceVar(&e.options.ChargeAlways, "charge-always", nil,
		"`names` of limits of the document that get charge: always, such as tokens,rows")
	f.Int64Var(&e.options.Version, "document-version", 1, "`version` of the document")
	f.StringVar(&e.previous, "previous", "",
		"`file` with the document made before, whose version this one gets, or the next one if it differs")
	f.BoolVar(&e.options.KeepGoing, "keep-going", false, "leave out files that cannot be imported")
	_ = cmd.RegisterFlagCompletionFunc("charge-always", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("descriptors", cobra.FixedCompletions(
		[]cobra.Completion{string(policy.DecideApart), string(policy.DecideTogether)},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (e *envoyImport) run(cmd *cobra.Command, from string) error {
	if err := e.setPrevious(cmd.Flags().Changed("document-version")); err != nil {
		return err
	}
	if err := e.setOptions(cmd.Flags().Changed("timezone")); err != nil {
		return exit.Usage(err)
	}
	all, warnings, err := readConfiguration(from)
	if err != nil {
		return exit.Usage(err)
	}
	made, err := envoyimport.Convert(all, e.options)
	if err != nil {
		return exit.Invalid(from, err)
	}
	tellWarnings(cmd.ErrOrStderr(), from+" is imported", append(warnings, made.Warnings...))
	tellLeftOut(cmd.ErrOrStderr(), made.LeftOut)
	_, err = cmd.OutOrStdout().Write(made.Document)
	if err == nil && len(made.LeftOut) > 0 {
		return exit.Silently(exit.Failed)
	}
	return err
}

// tellLeftOut says which files are not in the document, and why.
func tellLeftOut(w io.Writer, all []envoyimport.Refused) {
	for _, refused := range all {
		fmt.Fprintln(w, show.Visible(fmt.Sprintf("quotad: %s is left out: mend %s and import again\n%s",
			refused.Name, show.Counted(len(refused.Problems), "problem"), refused.Problems)))
	}
}

// setPrevious reads the document that was made before.
func (e *envoyImport) setPrevious(versioned bool) (err error) {
	if e.previous == "" {
		return nil
	}
	if versioned {
		return exit.Usage(errors.New("--previous gives the document its version: leave out --document-version, or --previous"))
	}
	e.options.Previous, err = Load(e.previous)
	return err
}

// setOptions checks the flags.
func (e *envoyImport) setOptions(zoned bool) error {
	o := &e.options
	if len(e.regions) == 0 {
		return errors.New("name the regions that share the limits, as in --region us-east=2 --region eu-west=1")
	}
	for _, r := range e.regions {
		name, weight, weighted := strings.Cut(r, "=")
		region := policy.Region{Name: name, Weight: 1}
		if weighted {
			var err error
			if region.Weight, err = strconv.ParseInt(weight, 10, 64); err != nil {
				return fmt.Errorf("--region %s: write a name and a weight, such as us-east=2", r)
			}
		}
		o.Regions = append(o.Regions, region)
	}
	o.Descriptors = policy.Together(e.descriptors)
	if o.Descriptors != policy.DecideApart && o.Descriptors != policy.DecideTogether {
		return fmt.Errorf("--descriptors %s: choose %s or %s", e.descriptors, policy.DecideApart,
			policy.DecideTogether)
	}
	if zoned && !e.calendar {
		return errors.New("--timezone is the one of --calendar: give both, or neither")
	}
	if e.calendar {
		if _, err := zones.Load(e.timezone); err != nil {
			return fmt.Errorf("--timezone: %w; write a zone of the IANA database, such as Europe/Berlin", err)
		}
		o.Timezone = e.timezone
	}
	return envoyimport.CheckOptions(*o)
}

// readConfiguration reads a folder or a file.
func readConfiguration(from string) ([]envoyimport.File, []policy.Warning, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w; name a folder, or a file", err)
	}
	if info.IsDir() {
		return envoyimport.Read(os.DirFS(from), from)
	}
	text, err := files.Read(from, envoyimport.MaxFileBytes)
	if err != nil && !errors.Is(err, files.ErrTooLarge) { // Convert reports those
		return nil, nil, fmt.Errorf("read configuration: %w; name a folder, or a file", err)
	}
	return []envoyimport.File{{Name: from, Text: text}}, nil, nil
}
