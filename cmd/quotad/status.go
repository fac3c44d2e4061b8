package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// nodeStatus is what is printed of the API's answer.
type nodeStatus struct {
	Region     string           `json:"region"`
	Node       string           `json:"node"`
	Version    string           `json:"version"`
	Epoch      string           `json:"epoch"`
	Generation uint64           `json:"generation"`
	Ready      bool             `json:"ready"`
	NotReady   string           `json:"not_ready"`
	Peers      []peerStatus     `json:"peers"`
	Members    []string         `json:"members"`
	Counters   map[string]int64 `json:"counters"`
}

type peerStatus struct {
	Region    string  `json:"region"`
	Heard     bool    `json:"heard"`
	Age       float64 `json:"age_ms"`
	RoundTrip float64 `json:"round_trip_ms"`
	Degraded  bool    `json:"degraded"`
}

func statusCommand() *cobra.Command {
	var node remote
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a node and what it knows of the other regions",
		Long: `status shows a node, its policy epoch, the other regions as it sees them, and what it has lent and borrowed.

Exit codes: 0 ready, 1 not ready, 5 no node answers.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return showStatus(cmd, &node, output) },
	}
	node.flags(cmd)
	outputFlag(cmd, &output)
	return cmd
}

func showStatus(cmd *cobra.Command, node *remote, output string) error {
	code, answer, err := node.get(cmd.Context(), "/v1/status", nil)
	if err != nil {
		return err
	}
	var s nodeStatus
	if code != http.StatusOK || json.Unmarshal(answer, &s) != nil || s.Region == "" {
		return node.refused(code, answer)
	}
	if output == "json" {
		err = indented(cmd.OutOrStdout(), answer)
	} else {
		err = s.print(cmd.OutOrStdout())
	}
	if err == nil && !s.Ready {
		err = fmt.Errorf("node %s/%s is not ready: %s; see its log", s.Region, s.Node, s.NotReady)
	}
	return err
}

func (s nodeStatus) print(w io.Writer) error {
	ready := "yes"
	if !s.Ready {
		ready = "no: " + s.NotReady
	}
	t := table(w)
	fmt.Fprintf(t, "node\t%s/%s, version %s\n", s.Region, s.Node, s.Version)
	fmt.Fprintf(t, "ready\t%s\n", ready)
	fmt.Fprintf(t, "policy\tepoch %s\n", s.Epoch)
	fmt.Fprintf(t, "store\tgeneration %d\n", s.Generation)
	fmt.Fprintf(t, "members\t%s\n", strings.Join(s.Members, ", "))
	if err := t.Flush(); err != nil {
		return err
	}
	t = table(w)
	if len(s.Peers) > 0 {
		fmt.Fprint(t, "\nREGION\tSTATE\tLAST ANSWER\tROUND TRIP\n")
	}
	for _, p := range s.Peers {
		fmt.Fprintf(t, "%s\n", p.row())
	}
	if len(s.Counters) > 0 {
		fmt.Fprint(t, "\nCOUNTER\tSINCE START\n")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		fmt.Fprintf(t, "%s\t%d\n", name, s.Counters[name])
	}
	return t.Flush()
}

func (p peerStatus) row() string {
	state := "ok"
	if p.Degraded {
		state = "degraded"
	}
	if !p.Heard {
		return p.Region + "\t" + state + "\tnever\t-"
	}
	return fmt.Sprintf("%s\t%s\t%s ago\t%s", p.Region, state, milliseconds(p.Age), milliseconds(p.RoundTrip))
}
