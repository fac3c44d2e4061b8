package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Status is what a node says of itself, as far as those who watch it ask.
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
		Incarnation uint64 `json:"incarnation"` // one more with each start
	} `json:"journal"`
	Counters map[string]int64 `json:"counters"`
}

// InTouch says what is missing for the node to be in touch with so many other
// regions, or nil.
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

// Status asks the node for its status, with the bounds of Request.
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
