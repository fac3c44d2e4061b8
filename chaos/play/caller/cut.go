package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// MostCut is the longest cut that a node makes, so that a forgotten one ends.
const MostCut = 10 * time.Minute

// Cut has the node cut itself off from the nodes of a region for d, in a direction (in, out or
// both); 0 heals. It returns how many packets the node's cuts have lost since it started. The node
// needs the setting chaos: true. Cut is under the bounds of Request.
func (c *Caller) Cut(ctx context.Context, region, direction string, d time.Duration) (lost uint64,
	err error) {
	q := map[string]any{"region": region, "direction": direction}
	if d > 0 {
		q["for"] = d.String()
	} else {
		q["heal"] = true
	}
	body, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	answer, err := c.Request(ctx, http.MethodPost, "/v1/cut", body)
	if err != nil {
		return 0, err
	}
	var done struct {
		Lost *uint64 `json:"packets_lost"`
	}
	if err := json.Unmarshal(answer, &done); err != nil || done.Lost == nil {
		return 0, fmt.Errorf("%s answered %.200q, which is no cut", c, answer)
	}
	return *done.Lost, nil
}
