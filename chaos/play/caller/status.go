package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Status is the part of a node's status that its watchers need.
type Status struct {
	Region  string   `json:"region"`
	Node    string   `json:"node"`
	Ready   bool     `json:"ready"`
	Epoch   string   `json:"epoch"`
	Members []string `json:"members"`
	Peers   []struct {
		Region   string `json:"region"`
		Heard    bool   `json:"heard"`
		Degraded bool   `json:"degraded"`
	} `json:"peers"`
	Journal struct {
		Incarnation uint64 `json:"incarnation"` // grows by one with each start
	} `json:"journal"`
	Counters map[string]int64 `json:"counters"`
}

// InTouch returns nil if the node is in touch with so many other regions, and otherwise an error
// that says what is missing.
func (s Status) InTouch(regions int) error {
	if len(s.Peers) < regions {
		return fmt.Errorf("%d of %d other regions are known", len(s.Peers), regions)
	}
	for _, p := range s.Peers {
		if !p.Heard || p.Degraded {
			return fmt.Errorf("region %s is out of touch", p.Region)
		}
	}
	return nil
}

// Status asks the node for its status, under the bounds of Request.
func (c *Caller) Status(ctx context.Context) (s Status, err error) {
	answer, err := c.Request(ctx, http.MethodGet, "/v1/status", nil)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(answer, &s); err != nil {
		return s, fmt.Errorf("read the status of %s: %w", c, err)
	}
	return s, nil
}
