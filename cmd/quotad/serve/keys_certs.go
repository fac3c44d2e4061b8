package serve

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/serve/authority"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/trade/peer"
)

func keysCACommand() *cobra.Command {
	valid := days(3650 * day)
	cmd := &cobra.Command{
		Use:   "ca DIR",
		Short: "Make an authority: ca.pem and ca.key",
		Long: `ca makes an authority in a folder, which it makes if need be. Nodes are given ca.pem. With ca.key anybody can be a node
of any region: keep it where no node runs.`,
		Example:           "  quotad keys ca certs",
		Args:              command.OneArgument("folder", "certs"),
		ValidArgsFunction: command.CompleteFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := authority.Make(args[0], time.Duration(valid))
			if err != nil {
				return err
			}
			return tellWritten(cmd.OutOrStdout(), done)
		},
	}
	cmd.Flags().Var(&valid, "valid", "how long the authority is good for, in days or hours")
	return cmd
}

func keysCertCommand() *cobra.Command {
	valid := days(90 * day)
	var who peer.Identity
	var hosts []string
	cmd := &cobra.Command{
		Use:   "cert DIR --region REGION --node NODE",
		Short: "Make a node's certificate and key, in the place of those that it has",
		Long: `cert makes DIR/REGION/NODE.pem and NODE.key with the authority in DIR. A node that runs with files of these names takes
new ones into use by itself. With --host the certificate is also good for api_tls and admin_tls: callers and operators
know a node by the host that they call, and trust the authority by its ca.pem.

The certificate names the region and the node in a URI, quotad://REGION/NODE. Certificates of any other authority do as
well for peer_tls, if they carry that URI and are for servers and clients.`,
		Example: `  quotad keys cert certs --region us-east --node n1
  quotad keys cert certs --region us-east --node n1 --host quota.us-east.example.org,10.0.0.7
  quotad keys cert certs --region operators --node alice    # of no region that has limits: to rehearse faults`,
		Args:              command.OneArgument("folder", "certs"),
		ValidArgsFunction: command.CompleteFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := authority.Issue(args[0], who, hosts, time.Duration(valid))
			if err != nil {
				return err
			}
			return tellWritten(cmd.OutOrStdout(), done)
		},
	}
	f := cmd.Flags()
	f.StringVar(&who.Region, "region", "", "region of the node")
	f.StringVar(&who.Node, "node", "", "name of the node")
	f.StringSliceVar(&hosts, "host", nil, "`hosts`, names or IP addresses, by which callers and operators reach the node")
	f.Var(&valid, "valid", "how long the certificate is good for, in days or hours")
	return cmd
}

const (
	day      = 24 * time.Hour
	maxValid = 36_500 * day
)

// days is a flag's duration in days, such as 90d, or in any form that time.ParseDuration reads.
type days time.Duration

// String implements pflag.Value.
func (d *days) String() string {
	if v := time.Duration(*d); v%day != 0 {
		return show.Span(v)
	}
	return strconv.Itoa(int(time.Duration(*d)/day)) + "d"
}

// Type implements pflag.Value.
func (d *days) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *days) Set(text string) error {
	v, err := time.ParseDuration(text)
	if whole, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if n, err = strconv.Atoi(whole); err == nil && n <= int(maxValid/day) {
			v = time.Duration(n) * day
		}
	}
	if err != nil || v < time.Minute || v > maxValid {
		return errors.New("write it like 90d or 12h, from 1m to 36500d")
	}
	*d = days(v)
	return nil
}

func tellWritten(w io.Writer, done authority.Written) error {
	_, err := fmt.Fprintf(w, "wrote %s, good until %s\nwrote %s, its key: a secret\n",
		done.Cert, done.Until.Format(time.RFC3339), done.Key)
	return err
}
