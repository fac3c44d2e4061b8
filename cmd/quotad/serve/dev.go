package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/dev"
	"github.com/quotad/quotad/policy"
)

func devCommand() *cobra.Command {
	o := dev.Options{}
	var file string
	var regions int
	var verbose bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Keep three regions running in this process, for trying out",
		Long: `dev runs a node with an embedded Redis for each region in this process, with 80 ms round trip between regions, and
serves on loopback until it is ended: HTTP, gRPC and the console of each region. The first region has the usual ports
(8080, 8081, admin 8083), each further one those that are a hundred higher. Nothing is kept.

Without --policy it enforces a sample: ten requests a minute for each account, worldwide. With it, the regions are those
of the file; see quotad limits --help. Documents applied later (quotad limits apply) are used too.

Exit codes: 0 ended by a signal, 1 a port is in use or a region failed, 2 bad usage or an invalid limits document.`,
		Example: "  quotad dev\n  quotad dev --regions 1\n  quotad dev --policy limits.yaml --round-trip 200ms",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch {
			case file != "" && cmd.Flags().Changed("regions"):
				return exit.Usage(errors.New("--regions is for the sample; with --policy the regions are those of the file"))
			case regions != 1 && regions != 3:
				return exit.Usage(fmt.Errorf("--regions %d: choose 1 or 3, or name a file with --policy", regions))
			case o.RoundTrip < 0 || o.RoundTrip > 2*time.Second:
				return exit.Usage(fmt.Errorf("--round-trip %s: choose 0 to 2s", o.RoundTrip))
			case o.Port < 0 || o.Port > maxDevPort:
				return exit.Usage(fmt.Errorf("--port %d: choose 1 to %d, or 0 for any free ports", o.Port, maxDevPort))
			}
			if o.Document, err = devDocument(file, regions); err != nil {
				return err
			}
			o.Log = slog.New(slog.DiscardHandler)
			if verbose {
				o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			}
			return dev.Run(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "policy", "", "limits document (default: a sample)")
	f.IntVar(&regions, "regions", 3, "regions of the sample: 1 or 3")
	f.DurationVar(&o.RoundTrip, "round-trip", 80*time.Millisecond, "between any two regions, 0 to 2s")
	f.IntVar(&o.Port, "port", 8080, "HTTP port of the first region; 0: any free ports")
	f.BoolVar(&verbose, "verbose", false, "print the log of all nodes")
	return cmd
}

// devDocument returns the document of a file, or the sample if none is named.
func devDocument(file string, regions int) (*policy.Document, error) {
	if file == "" {
		return dev.Sample(regions)
	}
	d, err := policy.Load(file)
	if err != nil {
		return nil, exit.Invalid(file, err)
	}
	return d, nil
}

// maxDevPort leaves room for the ports of dev.MaxRegions regions.
const maxDevPort = 65535 - 1000
